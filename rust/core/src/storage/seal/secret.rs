//! Keys that are erased from memory.

use std::mem::MaybeUninit;
use std::ops::Deref;

use zeroize::Zeroize;

/// A key whose memory is overwritten when the key is dropped. ring does not overwrite its keys.
pub(super) struct Secret<K>(Box<MaybeUninit<K>>);

impl<K> Secret<K> {
    pub(super) fn new(key: K) -> Self {
        Self(Box::new(MaybeUninit::new(key)))
    }
}

impl<K> Deref for Secret<K> {
    type Target = K;

    fn deref(&self) -> &K {
        // SAFETY: the slot was initialized by `new`, and only `drop` erases it.
        #[expect(unsafe_code, reason = "what is erased can hold no value afterwards")]
        unsafe {
            self.0.assume_init_ref()
        }
    }
}

impl<K> Drop for Secret<K> {
    fn drop(&mut self) {
        // SAFETY: the slot was initialized by `new`, and no code uses it after the drop.
        #[expect(unsafe_code, reason = "what is erased can hold no value afterwards")]
        unsafe {
            erase(&mut self.0);
        }
    }
}

/// Drops the value in `slot` and writes zeros over it.
///
/// # Safety
/// `slot` is initialized, and the caller does not treat it as initialized afterwards.
#[expect(unsafe_code, reason = "what is erased can hold no value afterwards")]
unsafe fn erase<K>(slot: &mut MaybeUninit<K>) {
    // SAFETY: the caller's promise.
    unsafe { slot.assume_init_drop() };
    std::slice::from_mut(slot).zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "memory is looked at behind the back of its type")]
    fn an_erased_key_leaves_zeros() {
        let mut slot = MaybeUninit::new([7_u8; 32]);
        // SAFETY: the slot is initialized.
        unsafe { erase(&mut slot) };
        // SAFETY: any bytes are a valid array of bytes, and the slot always held some.
        assert_eq!(unsafe { slot.assume_init() }, [0; 32]);
    }
}
