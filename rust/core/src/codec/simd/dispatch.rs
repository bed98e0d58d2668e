//! Function multiversioning: loops are compiled for scalar code, for AVX2 with FMA, and for
//! AVX-512.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Defines a function that is compiled once for each [`SimdLevel`]. A call takes the version for
/// the highest level of this processor.
///
/// In the body, `FUSED` is true if `f64::mul_add` is one instruction. Results must not depend on
/// `FUSED`.
macro_rules! multiversioned {
    ($(#[$meta:meta])* $vis:vis fn $name:ident$([$generic:ident: $bound:path])?($($argument:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name$(<$generic: $bound>)?($($argument: $type),*) $(-> $out)? {
            // The body is inlined so that it is compiled with the target features of its caller.
            #[inline(always)]
            fn body<const FUSED: bool $(, $generic: $bound)?>($($argument: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            {
                use $crate::codec::simd::SimdLevel;

                #[target_feature(enable = "avx2,bmi1,bmi2,fma")]
                fn avx2$(<$generic: $bound>)?($($argument: $type),*) $(-> $out)? {
                    body::<true $(, $generic)?>($($argument),*)
                }
                #[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
                fn avx512$(<$generic: $bound>)?($($argument: $type),*) $(-> $out)? {
                    body::<true $(, $generic)?>($($argument),*)
                }
                match SimdLevel::detected() {
                    SimdLevel::Scalar => {}
                    #[expect(unsafe_code, reason = "the processor was asked for these features")]
                    // SAFETY: `detected` has found every feature that `avx2` is compiled for.
                    SimdLevel::Avx2 => return unsafe { avx2($($argument),*) },
                    #[expect(unsafe_code, reason = "the processor was asked for these features")]
                    // SAFETY: `detected` has found every feature that `avx512` is compiled for.
                    SimdLevel::Avx512 => return unsafe { avx512($($argument),*) },
                }
            }
            body::<false $(, $generic)?>($($argument),*)
        }
    };
}

pub(crate) use multiversioned;

/// Collects the results of `map`, in the body of a [`multiversioned`] function.
#[expect(clippy::inline_always, reason = "the target features of the caller are wanted")]
#[inline(always)]
pub(crate) fn mapped<T: Copy, U>(numbers: &[T], mut map: impl FnMut(T) -> U) -> Vec<U> {
    let mut results = Vec::with_capacity(numbers.len());
    for (slot, number) in results.spare_capacity_mut().iter_mut().zip(numbers) {
        slot.write(map(*number));
    }
    #[expect(unsafe_code, reason = "writing zeros first takes as long; an iterator is not inlined")]
    // SAFETY: there is room for as many results as there are numbers, and that many were written.
    unsafe {
        results.set_len(numbers.len());
    }
    results
}

/// Instruction sets that [`multiversioned`] compiles for.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SimdLevel {
    Scalar,
    /// AVX2, BMI and FMA.
    Avx2,
    /// In addition AVX-512 (F, BW, CD, DQ, VL).
    Avx512,
}

#[cfg(target_arch = "x86_64")]
impl SimdLevel {
    /// Returns the highest level of this processor.
    #[inline]
    pub(crate) fn detected() -> Self {
        static DETECTED: OnceLock<SimdLevel> = OnceLock::new();
        let detected = *DETECTED.get_or_init(Self::detect);
        #[cfg(test)]
        let detected = tests::LEVEL_MAX.get().min(detected);
        detected
    }

    #[cold]
    fn detect() -> Self {
        let has_avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("fma");
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (has_avx2, has_avx512) {
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            (false, _) => Self::Scalar,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fmt::Debug;

    #[cfg(target_arch = "x86_64")]
    use super::SimdLevel;

    #[cfg(target_arch = "x86_64")]
    thread_local! {
        /// The highest level that calls on this thread may take.
        pub(crate) static LEVEL_MAX: std::cell::Cell<SimdLevel> =
            const { std::cell::Cell::new(SimdLevel::Avx512) };
    }

    /// Returns the result of `run`, which must be the same on every level of this processor.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn on_all_levels<T: PartialEq + Debug>(run: impl Fn() -> T) -> T {
        let levels = [SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512];
        let [scalar, avx2, avx512] = levels.map(|level| {
            LEVEL_MAX.set(level);
            run()
        });
        assert_eq!(scalar, avx2);
        assert_eq!(scalar, avx512);
        scalar
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn on_all_levels<T: PartialEq + Debug>(run: impl Fn() -> T) -> T {
        run()
    }
}
