//! Structs of metric handles.

/// Declares a struct of handles and its constructor. A handle is declared with a method of the registry and the name of
/// its metric. Any other value is in parentheses.
macro_rules! metric_handles {
    (
        $(#[$about:meta])* $visible:vis struct $name:ident;
        $create:vis fn $new:ident($registry:ident $(, $with:ident: $type:ty)*);
        $($(#[$what:meta])* $access:vis $field:ident: $handle:ty = $method:ident $metric:tt,)+
    ) => {
        $(#[$about])*
        $visible struct $name {
            $($(#[$what])* $access $field: $handle,)+
        }

        impl $name {
            /// Creates all handles.
            $create fn $new($registry: &scoregate_observe::telemetry::metrics::MetricsRegistry $(, $with: $type)*) -> Self {
                Self {
                    $($field: metric_handles!(@ $registry $method $metric),)+
                }
            }
        }
    };
    (@ $registry:ident value $value:tt) => { $value };
    (@ $registry:ident $method:ident $metric:literal) => { $registry.$method($metric) };
}
pub(super) use metric_handles;
