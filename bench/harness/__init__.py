"""What every case and every peer needs: processes, servers, samples, the report."""
