//! Exact numbers in machine output.

use assize_stats::Probability;
use assize_units::Ratio;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// An exact rational. Serialized as `{"exact": "num/den", "value": 0.5}`: the fraction is the
/// figure, the floating-point number beside it is for plots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact(pub Ratio);

impl std::fmt::Debug for Exact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fraction = format!("{}/{}", self.0.num(), self.0.den());
        pair(serializer, &fraction, self.0.as_f64())
    }
}

/// Serializes a probability in the form of [`Exact`].
pub(crate) fn probability<S: Serializer>(
    value: &Probability,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    pair(serializer, &value.fraction(), value.as_f64())
}

fn pair<S: Serializer>(serializer: S, exact: &str, value: f64) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Exact", 2)?;
    fields.serialize_field("exact", exact)?;
    fields.serialize_field("value", &value)?;
    fields.end()
}
