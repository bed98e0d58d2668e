//! Loops compiled for several kinds of machine: any, those with AVX2 and FMA, those with AVX-512.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Defines a function whose body the compiler turns into vector instructions of the machine it
/// runs on. In the body, `FUSED` says whether `f64::mul_add` is an instruction; results must not
/// depend on it.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident$([$generic:ident: $bound:path])?($($argument:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name$(<$generic: $bound>)?($($argument: $type),*) $(-> $out)? {
            // What it lands in says which instructions there are.
            #[inline(always)]
            fn body<const FUSED: bool $(, $generic: $bound)?>($($argument: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            {
                use $crate::codec::simd::Machine;

                #[target_feature(enable = "avx2,bmi1,bmi2,fma")]
                fn wide$(<$generic: $bound>)?($($argument: $type),*) $(-> $out)? {
                    body::<true $(, $generic)?>($($argument),*)
                }
                #[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
                fn widest$(<$generic: $bound>)?($($argument: $type),*) $(-> $out)? {
                    body::<true $(, $generic)?>($($argument),*)
                }
                match Machine::here() {
                    Machine::Any => {}
                    #[expect(unsafe_code, reason = "the features were asked for at run time")]
                    // SAFETY: `here` has found every feature that `wide` is compiled for.
                    Machine::Wide => return unsafe { wide($($argument),*) },
                    #[expect(unsafe_code, reason = "the features were asked for at run time")]
                    // SAFETY: `here` has found every feature that `widest` is compiled for.
                    Machine::Widest => return unsafe { widest($($argument),*) },
                }
            }
            body::<false $(, $generic)?>($($argument),*)
        }
    };
}

pub(crate) use vectorised;

/// Collects what `map` makes of each, in the body of something [`vectorised`].
#[expect(clippy::inline_always, reason = "where it lands says which instructions there are")]
#[inline(always)]
pub(crate) fn mapped<T: Copy, U>(numbers: &[T], mut map: impl FnMut(T) -> U) -> Vec<U> {
    let mut made = Vec::with_capacity(numbers.len());
    for (place, number) in made.spare_capacity_mut().iter_mut().zip(numbers) {
        place.write(map(*number));
    }
    #[expect(unsafe_code, reason = "writing zeros first takes as long; an iterator is not inlined")]
    // SAFETY: there was room for as many as there are numbers, and so many were written.
    unsafe {
        made.set_len(numbers.len());
    }
    made
}

/// Kinds of machine that [`vectorised`] compiles for.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Machine {
    Any,
    /// AVX2 and FMA.
    Wide,
    /// AVX-512 as well.
    Widest,
}

#[cfg(target_arch = "x86_64")]
impl Machine {
    /// What this machine is.
    #[inline]
    pub(crate) fn here() -> Self {
        static FOUND: OnceLock<Machine> = OnceLock::new();
        let found = *FOUND.get_or_init(Self::found);
        #[cfg(test)]
        let found = tests::MOST.get().min(found);
        found
    }

    #[cold]
    fn found() -> Self {
        let is_wide = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("fma");
        let is_widest = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (is_wide, is_widest) {
            (true, true) => Self::Widest,
            (true, false) => Self::Wide,
            (false, _) => Self::Any,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fmt::Debug;

    #[cfg(target_arch = "x86_64")]
    use super::Machine;

    #[cfg(target_arch = "x86_64")]
    thread_local! {
        /// What this thread takes its machine for, at most.
        pub(crate) static MOST: std::cell::Cell<Machine> =
            const { std::cell::Cell::new(Machine::Widest) };
    }

    /// What `run` gives, which is the same on every kind of machine that this one can stand for.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn everywhere<T: PartialEq + Debug>(run: impl Fn() -> T) -> T {
        let [any, wide, widest] = [Machine::Any, Machine::Wide, Machine::Widest].map(|most| {
            MOST.set(most);
            run()
        });
        assert_eq!(any, wide);
        assert_eq!(any, widest);
        any
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn everywhere<T: PartialEq + Debug>(run: impl Fn() -> T) -> T {
        run()
    }
}
