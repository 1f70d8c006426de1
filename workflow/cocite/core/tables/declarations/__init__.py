"""The declarations of all tables, in modules by stage; `core.tables` gathers them."""
