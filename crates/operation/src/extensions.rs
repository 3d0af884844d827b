//! State that upper layers keep with an operation, by type.
//!
//! A layer that needs to remember something for the rest of an operation (uncommitted changes of the catalog, reserved
//! places in the oplog) keeps one value of a type of its own here; the type's privacy keeps others away from it. Most
//! operations have none: then nothing is allocated.

use std::any::Any;

/// One value a type.
#[derive(Default)]
pub struct Extensions(Vec<Box<dyn Any + Send>>);

impl Extensions {
    /// The value of this type, if there is one.
    pub fn get<T: Any + Send>(&self) -> Option<&T> {
        self.0.iter().find_map(|value| value.downcast_ref())
    }

    /// The same, to change it.
    pub fn get_mut<T: Any + Send>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find_map(|value| value.downcast_mut())
    }

    /// The value of this type; made, if there is none.
    pub fn get_or_default<T: Any + Send + Default>(&mut self) -> &mut T {
        let place = match self.0.iter().position(|value| value.is::<T>()) {
            Some(place) => place,
            None => {
                self.0.push(Box::new(T::default()));
                self.0.len() - 1
            }
        };
        let found = self.0.get_mut(place).and_then(|value| value.downcast_mut());
        found.unwrap_or_else(|| unreachable!("it was found or made above"))
    }

    /// Puts a value in place of the one of its type, which is returned.
    pub fn insert<T: Any + Send>(&mut self, value: T) -> Option<T> {
        let before = self.remove();
        self.0.push(Box::new(value));
        before
    }

    /// Takes the value of this type out.
    pub fn remove<T: Any + Send>(&mut self) -> Option<T> {
        let place = self.0.iter().position(|value| value.is::<T>())?;
        self.0.swap_remove(place).downcast().ok().map(|value| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_a_type() {
        let mut extensions = Extensions::default();
        assert_eq!(extensions.get::<u32>(), None);
        *extensions.get_or_default::<u32>() += 1;
        *extensions.get_or_default::<u32>() += 1;
        extensions.get_or_default::<String>().push('x');
        assert_eq!((extensions.get(), extensions.get()), (Some(&2_u32), Some(&"x".to_owned())));
        assert_eq!(extensions.insert(7_u32), Some(2));
        assert_eq!((extensions.remove::<u32>(), extensions.remove::<u32>()), (Some(7), None));
    }
}
