//! Counterbalancing by rows of a Williams design, block by block.

/// The rows of the Williams design over `n` letters: `n` for an even `n`; for an odd one those and
/// their reverses. The first is 0, 1, n − 1, 2, n − 2, …; row r adds r to each letter, modulo n.
pub fn rows(n: usize) -> Vec<Vec<usize>> {
    let first: Vec<usize> = (0..n)
        .map(|place| match place {
            0 => 0,
            odd if odd % 2 == 1 => odd.div_ceil(2),
            even => n - even / 2,
        })
        .collect();
    let mut rows: Vec<Vec<usize>> = (0..n)
        .map(|by| first.iter().map(|letter| (letter + by) % n).collect())
        .collect();
    if n % 2 == 1 && n > 1 {
        let reverses: Vec<Vec<usize>> = rows
            .iter()
            .map(|row| row.iter().rev().copied().collect())
            .collect();
        rows.extend(reverses);
    }
    rows
}

/// One row for each block. Each row is tried, and the one with the smallest key is taken; the key,
/// compared from the left: the spread of (letter, position) counts beyond 1; the spread of
/// (letter, position, cell order) counts beyond 1; the sum of squared counts of immediate
/// successions; the row's number. `turns[b]` is the cell order of block `b`.
pub fn counterbalanced(n: usize, turns: &[usize]) -> Vec<Vec<usize>> {
    let rows = rows(n);
    let orders = turns.iter().copied().max().unwrap_or(0) + 1;
    let mut counts = Counts::new(n, orders);
    let mut chosen = Vec::with_capacity(turns.len());
    for turn in turns {
        let best = rows
            .iter()
            .enumerate()
            .min_by_key(|(number, row)| (counts.key_with(row, *turn), *number))
            .map(|(_, row)| row.clone())
            .unwrap_or_default();
        counts.add(&best, *turn);
        chosen.push(best);
    }
    chosen
}

/// How even some orders are: the largest minus the smallest count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Of (arm, position).
    pub position_spread: u32,
    /// Of (arm, position, cell order).
    pub position_in_cell_order_spread: u32,
    /// Of immediate successions of two arms.
    pub succession_spread: u32,
}

/// The balance of the orders of `n` arms.
pub fn balance(n: usize, orders: &[Vec<usize>], turns: &[usize]) -> Balance {
    let turn_count = turns.iter().copied().max().unwrap_or(0) + 1;
    let mut counts = Counts::new(n, turn_count);
    for (row, turn) in orders.iter().zip(turns) {
        counts.add(row, *turn);
    }
    Balance {
        position_spread: spread(&counts.positions),
        position_in_cell_order_spread: spread(&counts.positions_by_turn),
        succession_spread: spread(&counts.successions()),
    }
}

/// Counts of what was where, in flat tables: letter by position, by order of the cells.
struct Counts {
    letters: usize,
    positions: Vec<u32>,
    positions_by_turn: Vec<u32>,
    successions: Vec<u32>,
}

impl Counts {
    fn new(letters: usize, turns: usize) -> Counts {
        let pairs = letters * letters;
        Counts {
            letters,
            positions: vec![0; pairs],
            positions_by_turn: vec![0; pairs * turns],
            successions: vec![0; pairs],
        }
    }

    fn change(&mut self, row: &[usize], turn: usize, by: impl Fn(&mut u32)) {
        let pairs = self.letters * self.letters;
        for (position, letter) in row.iter().enumerate() {
            let place = letter * self.letters + position;
            by(&mut self.positions[place]);
            by(&mut self.positions_by_turn[turn * pairs + place]);
        }
        for pair in row.windows(2) {
            by(&mut self.successions[pair[0] * self.letters + pair[1]]);
        }
    }

    fn add(&mut self, row: &[usize], turn: usize) {
        self.change(row, turn, |count| *count += 1);
    }

    /// The key of the counts with one more row.
    fn key_with(&mut self, row: &[usize], turn: usize) -> (u32, u32, u64) {
        self.add(row, turn);
        let squares = self
            .successions
            .iter()
            .map(|count| u64::from(*count).pow(2))
            .sum();
        let key = (
            spread(&self.positions).saturating_sub(1),
            spread(&self.positions_by_turn).saturating_sub(1),
            squares,
        );
        self.change(row, turn, |count| *count -= 1);
        key
    }

    /// Successions of two different letters.
    fn successions(&self) -> Vec<u32> {
        let places = self.successions.iter().enumerate();
        places
            .filter(|(place, _)| place / self.letters != place % self.letters)
            .map(|(_, count)| *count)
            .collect()
    }
}

fn spread(counts: &[u32]) -> u32 {
    let most = counts.iter().max().copied().unwrap_or(0);
    let least = counts.iter().min().copied().unwrap_or(0);
    most - least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_four_and_of_three() {
        assert_eq!(
            rows(4),
            [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]
        );
        assert_eq!(
            rows(3),
            [
                [0, 1, 2],
                [1, 2, 0],
                [2, 0, 1],
                [2, 1, 0],
                [0, 2, 1],
                [1, 0, 2]
            ]
        );
        assert_eq!(rows(1), [[0]]);
    }

    #[test]
    fn every_succession_comes_equally_often_in_the_rows() {
        for n in 2..=8 {
            let rows = rows(n);
            let counts = balance(n, &rows, &vec![0; rows.len()]);
            assert_eq!(
                (counts.position_spread, counts.succession_spread),
                (0, 0),
                "{n} arms"
            );
        }
    }

    /// The claims of docs/plan-format.md, for every number of arms and blocks that it names.
    #[test]
    fn two_to_eight_arms_over_two_to_forty_blocks_are_balanced() {
        for n in 2..=8 {
            for blocks in 2..=40 {
                let turns: Vec<usize> = (0..blocks).map(|block| block % 2).collect();
                let orders = counterbalanced(n, &turns);
                let found = balance(n, &orders, &turns);
                let bound = if n % 2 == 0 { 1 } else { 4 };
                assert!(
                    found.position_spread <= 1,
                    "{n} arms, {blocks} blocks: {found:?}"
                );
                assert!(
                    found.position_in_cell_order_spread <= 1,
                    "{n} arms, {blocks} blocks: {found:?}"
                );
                assert!(
                    found.succession_spread <= bound,
                    "{n} arms, {blocks} blocks: {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_longer_set_begins_like_a_shorter_one() {
        let turns: Vec<usize> = (0..12).map(|block| block % 2).collect();
        assert_eq!(
            counterbalanced(3, &turns)[..7],
            counterbalanced(3, &turns[..7])[..]
        );
    }
}
