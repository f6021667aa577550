from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

described = FileDescriptorSet.FromString(open("descriptor.binpb", "rb").read())
files = [file.name for file in described.file if not file.name.startswith("google/protobuf/")]
args = ["--descriptor_set_in=descriptor.binpb", "--python_out=.", "--grpc_python_out=."]
raise SystemExit(protoc.main(["protoc", *args, *files]))
