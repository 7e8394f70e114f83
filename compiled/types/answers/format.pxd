from ..schema.tools cimport Toolset, read_tools
