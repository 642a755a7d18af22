"""Keeps Lance namespaces and tables in data catalogs equal to YAML manifests in git."""

__version__ = "0.1.0"
