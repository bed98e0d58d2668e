//! Loops compiled twice: for any machine, and for those with AVX2 and FMA.

/// Defines a function whose body the compiler turns into vector instructions of the machine it
/// runs on. In the body, `FUSED` says whether `f64::mul_add` is an instruction; results must not
/// depend on it.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name($($argument: $type),*) $(-> $out)? {
            // What it lands in says which instructions there are.
            #[inline(always)]
            fn body<const FUSED: bool>($($argument: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            if $crate::column::vector::is_wide() {
                #[target_feature(enable = "avx2,bmi1,bmi2,fma")]
                fn wide($($argument: $type),*) $(-> $out)? {
                    body::<true>($($argument),*)
                }
                #[expect(unsafe_code, reason = "the features were asked for at run time")]
                // SAFETY: `is_wide` has found every feature that `wide` is compiled for.
                return unsafe { wide($($argument),*) };
            }
            body::<false>($($argument),*)
        }
    };
}

pub(super) use vectorised;

/// Whether the machine has the features that [`vectorised`] compiles for.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn is_wide() -> bool {
    #[cfg(test)]
    if tests::PORTABLE.get() {
        return false;
    }
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("fma")
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// Whether this thread does without vectors of the machine.
        pub(super) static PORTABLE: Cell<bool> = const { Cell::new(false) };
    }

    /// What `run` gives as any machine would compute it.
    pub(in crate::column) fn portably<T>(run: impl FnOnce() -> T) -> T {
        PORTABLE.set(true);
        let result = run();
        PORTABLE.set(false);
        result
    }
}
