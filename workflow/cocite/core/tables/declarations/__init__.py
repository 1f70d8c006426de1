"""The declarations of all tables, a module for the tables of each stage; `core.tables` gathers them."""
