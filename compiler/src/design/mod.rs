//! The orders of arms and cells in the blocks of a set.

mod williams;

pub use williams::{Balance, balance, counterbalanced, rows};

use assize_study::ast::{ArmOrder, CellOrder};

use crate::draw::{Purpose, Stream};

/// The order of `arms` in each of `blocks` blocks, as places in the list. `turns` says for each
/// block which order of the cells it has, so that the two are not confounded.
///
/// `counterbalanced` gives each arm a letter by one permutation drawn from `base_seed`;
/// `shuffled` draws anew in each block.
pub fn arm_orders(
    order: ArmOrder,
    arms: usize,
    turns: &[usize],
    base_seed: u128,
) -> Vec<Vec<usize>> {
    let blocks = turns.len();
    match order {
        ArmOrder::Fixed => vec![(0..arms).collect(); blocks],
        ArmOrder::Rotating => (0..blocks).map(|block| rotated(arms, block)).collect(),
        ArmOrder::Shuffled => (0..blocks)
            .map(|block| shuffled(Purpose::ArmOrder, arms, base_seed + block as u128))
            .collect(),
        ArmOrder::Counterbalanced => {
            let letters = shuffled(Purpose::ArmOrder, arms, base_seed);
            counterbalanced(arms, turns)
                .into_iter()
                .map(|row| row.into_iter().map(|letter| letters[letter]).collect())
                .collect()
        }
    }
}

/// The order of `cells` in each of `blocks` blocks, as places in the list.
pub fn cell_orders(
    order: CellOrder,
    cells: usize,
    blocks: usize,
    base_seed: u128,
) -> Vec<Vec<usize>> {
    let one = |block: usize| match order {
        CellOrder::Fixed => (0..cells).collect(),
        CellOrder::Alternating if block.is_multiple_of(2) => (0..cells).collect(),
        CellOrder::Alternating => (0..cells).rev().collect(),
        CellOrder::Rotating => rotated(cells, block),
        CellOrder::Shuffled => shuffled(Purpose::CellOrder, cells, base_seed + block as u128),
    };
    (0..blocks).map(one).collect()
}

/// Which order of the cells a block has: orders that are equal have the same number.
pub fn turns(order: CellOrder, cells: usize, blocks: usize) -> Vec<usize> {
    let turn = |block: usize| match order {
        CellOrder::Alternating if cells > 1 => block % 2,
        CellOrder::Rotating => block % cells.max(1),
        CellOrder::Alternating | CellOrder::Fixed | CellOrder::Shuffled => 0,
    };
    (0..blocks).map(turn).collect()
}

fn rotated(items: usize, by: usize) -> Vec<usize> {
    (0..items).map(|place| (place + by) % items).collect()
}

fn shuffled(purpose: Purpose, items: usize, seed: u128) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items).collect();
    Stream::new(purpose, seed, "", 0).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_alternate_and_rotate() {
        assert_eq!(
            cell_orders(CellOrder::Alternating, 3, 3, 0),
            [[0, 1, 2], [2, 1, 0], [0, 1, 2]]
        );
        assert_eq!(
            cell_orders(CellOrder::Rotating, 3, 4, 0),
            [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
        );
        assert_eq!(cell_orders(CellOrder::Fixed, 2, 2, 0), [[0, 1], [0, 1]]);
    }

    #[test]
    fn rotating_arms_begin_one_later_in_each_block() {
        let turns = turns(CellOrder::Fixed, 1, 3);
        assert_eq!(
            arm_orders(ArmOrder::Rotating, 3, &turns, 0),
            [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
        );
    }

    #[test]
    fn a_shuffled_block_does_not_hang_on_the_number_of_blocks() {
        let few = arm_orders(ArmOrder::Shuffled, 4, &[0; 3], 5);
        let many = arm_orders(ArmOrder::Shuffled, 4, &[0; 9], 5);
        assert_eq!(few[..], many[..3]);
    }
}
