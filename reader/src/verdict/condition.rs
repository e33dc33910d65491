//! Validity conditions, evaluated exactly over one arm, block and cell.

use assize_plan::{Measure, Node};
use assize_units::{Ratio, RatioError};

use crate::metrics::NoFigure;

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// It does.
    Yes,
    /// It does not; the figures that it names, with their values.
    No(Vec<(Measure, Ratio)>),
    /// Nobody can tell.
    Unknown(String),
}

/// Evaluates a condition. `and` and `or` are decided by one side where that is enough.
pub(super) fn evaluate(
    node: &Node,
    figure: &impl Fn(&Measure) -> Result<Ratio, NoFigure>,
) -> Holds {
    match truth(node, figure) {
        Ok(true) => Holds::Yes,
        Ok(false) => {
            let mut named = Vec::new();
            super::each_measure(node, &mut |measure: &Measure| {
                if let Ok(value) = figure(measure) {
                    named.push((measure.clone(), value));
                }
            });
            Holds::No(named)
        }
        Err(why) => Holds::Unknown(why.to_string()),
    }
}

#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("{0}")]
    Figure(#[from] NoFigure),
    #[error("{0}")]
    Arithmetic(#[from] RatioError),
    #[error("a number stands where true or false is due")]
    NotTruth,
    #[error("true or false stands where a number is due")]
    NotNumber,
}

fn truth(
    node: &Node,
    figure: &impl Fn(&Measure) -> Result<Ratio, NoFigure>,
) -> Result<bool, NoAnswer> {
    match node {
        Node::Compare(op, left, right) => {
            Ok(op.holds(number(left, figure)?, number(right, figure)?))
        }
        Node::And(left, right) => either_decides(truth(left, figure), truth(right, figure), false),
        Node::Or(left, right) => either_decides(truth(left, figure), truth(right, figure), true),
        _ => Err(NoAnswer::NotTruth),
    }
}

/// `decisive` on either side is the answer, whatever the other side is.
fn either_decides(
    left: Result<bool, NoAnswer>,
    right: Result<bool, NoAnswer>,
    decisive: bool,
) -> Result<bool, NoAnswer> {
    match (left, right) {
        (Ok(value), _) | (_, Ok(value)) if value == decisive => Ok(decisive),
        (Err(why), _) | (_, Err(why)) => Err(why),
        (Ok(_), Ok(_)) => Ok(!decisive),
    }
}

fn number(
    node: &Node,
    figure: &impl Fn(&Measure) -> Result<Ratio, NoFigure>,
) -> Result<Ratio, NoAnswer> {
    let both = |left: &Node, right: &Node| -> Result<(Ratio, Ratio), NoAnswer> {
        Ok((number(left, figure)?, number(right, figure)?))
    };
    match node {
        Node::Value(value) => Ok(*value),
        Node::Measure(measure) => Ok(figure(measure)?),
        Node::Add(left, right) => both(left, right).and_then(|(a, b)| Ok(a.add(b)?)),
        Node::Sub(left, right) => both(left, right).and_then(|(a, b)| Ok(a.sub(b)?)),
        Node::Mul(left, right) => both(left, right).and_then(|(a, b)| Ok(a.mul(b)?)),
        Node::Div(left, right) => both(left, right).and_then(|(a, b)| Ok(a.div(b)?)),
        Node::Min(left, right) => both(left, right).map(|(a, b)| a.min(b)),
        Node::Max(left, right) => both(left, right).map(|(a, b)| a.max(b)),
        Node::Compare(..) | Node::And(..) | Node::Or(..) => Err(NoAnswer::NotNumber),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_plan::{CompareOp, Quantity};

    fn measure(quantity: Quantity) -> Node {
        Node::Measure(Measure {
            quantity,
            stat: None,
            from: None,
            class: None,
            within: Vec::new(),
        })
    }

    fn is_zero(quantity: Quantity) -> Node {
        let zero = Box::new(Node::Value(Ratio::ZERO));
        Node::Compare(CompareOp::Eq, Box::new(measure(quantity)), zero)
    }

    fn figures(measure: &Measure) -> Result<Ratio, NoFigure> {
        match measure.quantity {
            Quantity::Failed => Ok(Ratio::whole(2)),
            Quantity::Missing => Ok(Ratio::ZERO),
            _ => Err(NoFigure::NoSample),
        }
    }

    #[test]
    fn a_breach_names_what_it_found() {
        let Holds::No(found) = evaluate(&is_zero(Quantity::Failed), &figures) else {
            panic!("it does not hold");
        };
        assert_eq!(found[0].1, Ratio::whole(2));
        assert_eq!(evaluate(&is_zero(Quantity::Missing), &figures), Holds::Yes);
    }

    #[test]
    fn what_is_not_there_is_neither_true_nor_false() {
        let unknown = is_zero(Quantity::Gap);
        assert!(matches!(evaluate(&unknown, &figures), Holds::Unknown(_)));
        let yes = is_zero(Quantity::Missing);
        let no = is_zero(Quantity::Failed);
        let or = Node::Or(Box::new(unknown.clone()), Box::new(yes.clone()));
        assert_eq!(evaluate(&or, &figures), Holds::Yes);
        let and = Node::And(Box::new(unknown.clone()), Box::new(no));
        assert!(matches!(evaluate(&and, &figures), Holds::No(_)));
        let and = Node::And(Box::new(unknown), Box::new(yes));
        assert!(matches!(evaluate(&and, &figures), Holds::Unknown(_)));
    }

    #[test]
    fn a_number_is_no_truth() {
        assert!(matches!(
            evaluate(&measure(Quantity::Failed), &figures),
            Holds::Unknown(_)
        ));
    }
}
