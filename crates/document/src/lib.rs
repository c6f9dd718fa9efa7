//! TOML, YAML and JSON files as trees that know where everything stands.
