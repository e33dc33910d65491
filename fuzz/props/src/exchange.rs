//! Any calls in any order, on a cell that the input draws: never a panic, and each request ends once.

use assize_core::Session;

use crate::timing::noise::make_calls;
use crate::timing::setting::Setting;

/// Bytes that choose the cell; what follows them chooses the calls.
const CELL_BYTES: usize = 64;

/// Makes the calls that the input draws.
pub fn check(data: &[u8]) {
    let (cell, calls) = data.split_at(data.len().min(CELL_BYTES));
    let setting = Setting::draw(cell);
    make_calls(&mut Session::new(setting.spec.into()), calls);
}
