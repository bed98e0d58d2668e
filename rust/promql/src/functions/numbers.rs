//! Functions of one number.

/// A function of one number.
pub(crate) type NumberFunction = fn(f64) -> f64;

/// Functions by name.
pub(crate) const FUNCTIONS: [(&str, NumberFunction); 9] = [
    ("abs", f64::abs),
    ("ceil", f64::ceil),
    ("exp", f64::exp),
    ("floor", f64::floor),
    ("ln", f64::ln),
    ("log10", f64::log10),
    ("log2", f64::log2),
    ("sgn", sign),
    ("sqrt", f64::sqrt),
];

fn sign(value: f64) -> f64 {
    if value < 0.0 {
        -1.0
    } else if value > 0.0 {
        1.0
    } else {
        value
    }
}

/// Rounds to the nearest multiple; halves go up.
pub(crate) fn rounded(value: f64, multiple: f64) -> f64 {
    let inverse = 1.0 / multiple;
    (value * inverse + 0.5).floor() / inverse
}

/// Returns the larger number. NaN is larger than all numbers but infinity, as in Go.
pub(crate) fn larger(one: f64, other: f64) -> f64 {
    if one == f64::INFINITY || other == f64::INFINITY {
        f64::INFINITY
    } else if one.is_nan() || other.is_nan() {
        f64::NAN
    } else {
        one.max(other)
    }
}

/// Returns the smaller number. NaN is smaller than all numbers but negative infinity, as in Go.
pub(crate) fn smaller(one: f64, other: f64) -> f64 {
    -larger(-one, -other)
}

/// Writes a number in digits, without an exponent. Example: `0.5`, `+Inf`.
pub(crate) fn in_digits(value: f64) -> String {
    if value == f64::INFINITY {
        return "+Inf".to_owned();
    }
    if value == f64::NEG_INFINITY { "-Inf".to_owned() } else { value.to_string() }
}
