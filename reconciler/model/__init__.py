"""Plain, frozen data that every other package speaks. Nothing here does IO."""
