"""One module per case."""

from cases import grpc_kept, grpc_new, http_idle, http_kept

ALL = [grpc_kept.CASE, grpc_new.CASE, http_kept.CASE, http_idle.CASE]
