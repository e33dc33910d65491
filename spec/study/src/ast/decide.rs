//! Block sets, families of hypotheses, comparisons, gates and controls.

use super::Text;
use super::setting::{ArmOrder, CellOrder, words};
use crate::expr::{Call, CellRef, Expr, Name, Sentence};
use crate::source::Spanned;

/// A set of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockSet {
    /// `repeat`: how many blocks; 1.
    pub repeat: Option<Expr>,
    /// `arms`: which arms; all but abstract ones.
    pub arms: Option<Spanned<Vec<Name>>>,
    /// `cells`: which cells, in their order; all. A family's name stands for all its members.
    pub cells: Option<Spanned<Vec<CellRef>>>,
    /// `arm_order`: the order of the arms; `fixed`.
    pub arm_order: Option<Spanned<ArmOrder>>,
    /// `cell_order`: the order of the cells; `fixed`.
    pub cell_order: Option<Spanned<CellOrder>>,
    /// `every`: the time from one block's start to the next.
    pub every: Option<Expr>,
    /// `excluded`: reported apart, in no test and no validity.
    pub excluded: Option<Spanned<bool>>,
    /// `restart`: whether a server is started anew in each block; it is.
    pub restart: Option<Spanned<bool>>,
    /// `like`: the entry that this one completes.
    pub like: Option<Name>,
    /// `abstract`: only there to be completed.
    pub is_abstract: bool,
}

/// A family of hypotheses and how it is decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// `test`: such as `sign(ties = nonwins)`.
    pub test: Option<Call>,
    /// `correct`: such as `holm(5%)`.
    pub correct: Option<Call>,
    /// `interval`: such as `median_order_statistic`.
    pub interval: Option<Call>,
    /// `valid`: conditions; one breach blocks every hypothesis of the family.
    pub valid: Vec<Expr>,
    /// `hypotheses`: the sentences.
    pub hypotheses: Vec<Sentence>,
    /// `expect`: what the verdict ought to be, else the exit status is 4.
    pub expect: Option<Spanned<Expectation>>,
    /// `scope`: the author's own limits, printed as they are.
    pub scope: Option<Text>,
    /// `discloses`: the author's words, printed as they are.
    pub discloses: Option<Text>,
    /// `like`: the entry that this one completes.
    pub like: Option<Name>,
    /// `abstract`: only there to be completed.
    pub is_abstract: bool,
}

words! {
    /// `expect` of a family.
    Expectation {
        /// Every hypothesis is supported.
        AllSupported = "all supported",
        /// No hypothesis is supported: an A/A study.
        NoneSupported = "none supported",
    }
}

/// Arms that may differ only in what is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// `arms`: which.
    pub arms: Spanned<Vec<Name>>,
    /// `differ`: keys of an arm, such as `args` or `env.NAME`.
    pub differ: Spanned<Vec<Text>>,
}

/// A condition before timing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate {
    /// `rule`: such as `parity(orders = both)`.
    pub rule: Option<Call>,
    /// `send`: the request class that is sent.
    pub send: Option<Name>,
    /// `items`: a file of items.
    pub items: Option<Text>,
    /// `reference`: an arm or a file.
    pub reference: Option<Text>,
    /// `score`: how an answer is scored.
    pub score: Option<Name>,
    /// `command`: or a command that decides.
    pub command: Vec<Text>,
    /// `discloses`: the author's words, printed as they are.
    pub discloses: Option<Text>,
    /// `like`: the entry that this one completes.
    pub like: Option<Name>,
    /// `abstract`: only there to be completed.
    pub is_abstract: bool,
}

/// An independent figure in every block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// `cell`: taken from a cell.
    pub cell: Option<CellRef>,
    /// `metric`: which figure of the cell.
    pub metric: Option<Expr>,
    /// `command`: or from a command's JSON.
    pub command: Vec<Text>,
    /// `at`: the place of the figure in that JSON.
    pub at: Option<Text>,
    /// `tolerance`: how far it may move.
    pub tolerance: Option<Expr>,
    /// `on_drift`: what happens then.
    pub on_drift: Option<Spanned<OnDrift>>,
}

words! {
    /// `on_drift` of a control.
    OnDrift {
        /// The run stops.
        Stop = "stop",
        /// The block is marked.
        Mark = "mark",
    }
}
