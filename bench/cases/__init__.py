"""One module per case."""

from cases import grpc_kept, grpc_new, http_idle, http_kept, sql, sql_load, storage_files, storage_memory, storage_s3

ALL = [grpc_kept.CASE, grpc_new.CASE, http_kept.CASE, http_idle.CASE]
ALL += [storage_files.CASE, storage_s3.CASE, storage_memory.CASE, sql.MARIADB, sql.POSTGRESQL, sql_load.CASE]
