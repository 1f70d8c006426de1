"""A run that keeps its results in an object storage, and is killed while it trains."""

import os
import signal
import subprocess
import time

import pytest
from tests.clusters.conftest import configured
from tests.slurm.conftest import command, differing, ending

PREFIX = ["--default-storage-provider", "s3", "--default-storage-prefix", "s3://bucket"]
LOCAL = ".snakemake/storage/s3/bucket"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def test_a_run_in_s3_that_was_killed_has_the_tables_and_the_model_of_a_run_on_a_disk(tmp_path, calm, monkeypatch):
    boto3 = pytest.importorskip("boto3", reason="needs boto3")
    moto = pytest.importorskip("moto.server", reason="needs moto[s3,server]")
    pytest.importorskip("snakemake_storage_plugin_s3", reason="needs snakemake-storage-plugin-s3")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    keys = {"endpoint_url": "http://{}:{}".format(*server.get_host_and_port()), "access_key": "a", "secret_key": "b"}
    for name, value in keys.items():
        monkeypatch.setenv(f"SNAKEMAKE_STORAGE_S3_{name.upper()}", value)
    call = [*command(configured(tmp_path)), *PREFIX, "--cores", "2"]
    try:
        with (tmp_path / "snakemake.log").open("w") as log:
            run = subprocess.Popen(call, stdout=log, stderr=log, start_new_session=True)
            while not (tmp_path / LOCAL / "results/.state/encoder/near/seed-1/checkpoint.safetensors").exists():
                assert run.poll() is None, (tmp_path / "snakemake.log").read_text()[-5000:]
                time.sleep(0.05)
            os.killpg(run.pid, signal.SIGKILL)
            again = subprocess.Popen(call, stdout=log, stderr=log)
        ended = ending(tmp_path, again)
        assert ended.status == 0, ended.log[-5000:]
        names = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        bucket = boto3.resource("s3", endpoint_url=keys["endpoint_url"], **names).Bucket("bucket")
        for stored in bucket.objects.all():
            (file := tmp_path / "stored" / stored.key).parent.mkdir(parents=True, exist_ok=True)
            bucket.download_file(stored.key, str(file))
    finally:
        server.stop()
    assert differing(tmp_path / "stored", calm.folder) == []
    weights = "results/encoder/near/seed-1/model/model.safetensors"
    assert (tmp_path / "stored" / weights).read_bytes() == (calm.folder / weights).read_bytes()
    assert "Going on after step" in (tmp_path / "stored/logs/encoder/near/seed-1/train.log").read_text()
