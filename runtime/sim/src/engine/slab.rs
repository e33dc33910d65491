//! A vector whose places are used again.

/// Values under small, stable keys.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(key) = self.free.pop() {
            self.places[key as usize] = Some(value);
            return key;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, key: u32) -> Option<T> {
        let value = self.places.get_mut(key as usize)?.take();
        if value.is_some() {
            self.free.push(key);
        }
        value
    }

    pub(super) fn get(&self, key: u32) -> Option<&T> {
        self.places.get(key as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        self.places.get_mut(key as usize)?.as_mut()
    }
}
