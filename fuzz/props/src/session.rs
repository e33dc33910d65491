//! Any bytes as a schedule, a peer with its faults, and a driver: every law of timing must hold.

use crate::timing::laws;
use crate::timing::setting::Setting;
use crate::timing::world::run;

/// Bytes that choose how the driver behaves; what follows them chooses cell and peer.
const DRIVER_BYTES: usize = 8;

/// Runs what the input draws, with a punctual driver where its first byte is 0.
pub fn check(data: &[u8]) {
    let Some((driver, cell)) = data.split_at_checked(DRIVER_BYTES) else {
        return;
    };
    let setting = Setting::draw(cell);
    if driver[0] != 0 {
        laws::check(&run(&setting.with_troubled_driver(&driver[1..])));
        return;
    }
    laws::check(&run(&setting));
    let backward: Vec<u8> = cell.iter().rev().copied().collect();
    laws::a_peer_moves_no_dispatch(setting.clone(), &Setting::draw(&backward));
    laws::a_cut_changes_nothing(setting);
}
