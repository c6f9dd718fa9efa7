//! The normal distribution by the inverse of its distribution function, and its relatives.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::{MAX_TRIES, exponential, sign};
use crate::stream::Stream;

/// A draw of mean 0 and variance 1.
pub(crate) fn normal(stream: &mut Stream) -> f64 {
    quantile(stream.open_unit())
}

/// A normal draw within (low, high).
pub(crate) fn truncated_normal(low: f64, high: f64, stream: &mut Stream) -> f64 {
    if low > 0.0 {
        // Small probabilities are precise, those near 1 are not.
        return -truncated_normal(-high, -low, stream);
    }
    if high < -5.0 {
        return -tail(-high, -low, stream);
    }
    let (start, end) = (below(low), below(high));
    quantile(start + (end - start) * stream.open_unit()).clamp(low, high)
}

/// A draw within (low, high), far above 0: exponential, then rejected.
fn tail(low: f64, high: f64, stream: &mut Stream) -> f64 {
    let reach = -libm::expm1(-low * (high - low));
    for _ in 0..MAX_TRIES {
        let over = -libm::log1p(-reach * stream.open_unit()) / low;
        if exponential(stream) >= over * over / 2.0 {
            return (low + over).min(high);
        }
    }
    f64::NAN
}

/// The probability of a value below this one.
fn below(value: f64) -> f64 {
    libm::erfc(-value * FRAC_1_SQRT_2) / 2.0
}

/// An angle around 0 (Best and Fisher).
pub(crate) fn von_mises(kappa: f64, stream: &mut Stream) -> f64 {
    if kappa < 1e-8 {
        return PI * (2.0 * stream.unit() - 1.0);
    }
    if kappa > 1e6 {
        // No double tells it from the normal distribution here.
        return normal(stream) / kappa.sqrt();
    }
    let tau = 1.0 + (1.0 + 4.0 * kappa * kappa).sqrt();
    let rho = (tau - (2.0 * tau).sqrt()) / (2.0 * kappa);
    let r = (1.0 + rho * rho) / (2.0 * rho);
    for _ in 0..MAX_TRIES {
        let z = libm::cos(PI * stream.unit());
        let cosine = (1.0 + r * z) / (r + z);
        let y = kappa * (r - cosine);
        let v = stream.open_unit();
        if y * (2.0 - y) - v >= 0.0 || libm::log(y / v) + 1.0 - y >= 0.0 {
            return sign(stream) * libm::acos(cosine.clamp(-1.0, 1.0));
        }
    }
    f64::NAN
}

/// The value that this share of draws is below (Wichura's AS 241, precise to a double).
fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * ratio(&CENTRE, r);
    }
    let r = (-libm::log(if q < 0.0 { p } else { 1.0 - p })).sqrt();
    let x = if r <= 5.0 { ratio(&SIDE, r - 1.6) } else { ratio(&FAR, r - 5.0) };
    if q < 0.0 { -x } else { x }
}

/// Numerator and denominator, highest power first.
type Ratio = [[f64; 8]; 2];

fn ratio([top, bottom]: &Ratio, r: f64) -> f64 {
    let at = |coefficients: &[f64; 8]| coefficients.iter().fold(0.0, |sum, c| sum * r + c);
    at(top) / at(bottom)
}

const CENTRE: Ratio = [
    [
        2_509.080_928_730_122_7,
        33_430.575_583_588_13,
        67_265.770_927_008_7,
        45_921.953_931_549_87,
        13_731.693_765_509_46,
        1_971.590_950_306_551_3,
        133.141_667_891_784_38,
        3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_854,
        28_729.085_735_721_943,
        39_307.895_800_092_71,
        21_213.794_301_586_597,
        5_394.196_021_424_751,
        687.187_007_492_057_9,
        42.313_330_701_600_91,
        1.0,
    ],
];

const SIDE: Ratio = [
    [
        7.745_450_142_783_414e-4,
        0.022_723_844_989_269_184,
        0.241_780_725_177_450_6,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        0.015_198_666_563_616_457,
        0.148_103_976_427_480_08,
        0.689_767_334_985_1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];

const FAR: Ratio = [
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        0.001_242_660_947_388_078_4,
        0.026_532_189_526_576_124,
        0.296_560_571_828_504_87,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_7e-5,
        7.868_691_311_456_133e-4,
        0.014_875_361_290_850_615,
        0.136_929_880_922_735_8,
        0.599_832_206_555_887_9,
        1.0,
    ],
];
