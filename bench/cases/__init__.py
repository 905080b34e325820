"""One module per case."""

from cases import flow, flow_idle, grpc_kept, grpc_new, http_idle, http_kept, script_http, script_idle
from cases import script_pace, script_rate
from cases import sql, sql_load, storage_files, storage_memory, storage_s3

ALL = [grpc_kept.CASE, grpc_new.CASE, http_kept.CASE, http_idle.CASE, flow.CASE, flow_idle.CASE]
ALL += [script_http.CASE, script_http.SHARED, script_rate.CASE, script_idle.CASE, script_pace.CASE]
ALL += [storage_files.CASE, storage_s3.CASE, storage_memory.CASE, sql.MARIADB, sql.POSTGRESQL, sql_load.CASE]
