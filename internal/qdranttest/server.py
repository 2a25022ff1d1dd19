"""A server for tests that speaks Qdrant's gRPC protocol.

It puts Qdrant's own edge engine (qdrant-edge-py: one shard in the process, the
same storage, indexes, filters, scoring and write-ahead log) behind Qdrant's own
generated service (qdrant-client). It is not a Qdrant server: there is no
cluster, no authentication, no TLS, and only what this project calls is served.
Everything else answers UNIMPLEMENTED.

    server.py FOLDER [--port N] [--version V] [--max-message BYTES] [--optimize]

Collections are kept in FOLDER. When it is ready it prints "ready PORT".
"""

import argparse
import asyncio
import os
import re
import shutil
import signal
import threading
import uuid

import grpc
import grpc.aio
import numpy
import qdrant_edge as edge
from qdrant_client.grpc import collections_pb2 as collections
from qdrant_client.grpc import collections_service_pb2_grpc as collections_service
from qdrant_client.grpc import json_with_int_pb2 as json
from qdrant_client.grpc import points_pb2 as points
from qdrant_client.grpc import points_service_pb2_grpc as points_service
from qdrant_client.grpc import qdrant_common_pb2 as common
from qdrant_client.grpc import qdrant_pb2 as qdrant
from qdrant_client.grpc import qdrant_pb2_grpc as qdrant_service

Code = grpc.StatusCode


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def wrong(message):
    return Refused(Code.INVALID_ARGUMENT, "Wrong input: " + message)


def unserved(what):
    return Refused(Code.UNIMPLEMENTED, f"{what} is not served by this test server")


# The engine raises plain exceptions; the kind is in their text.
KINDS = [
    (r"Vector dimension error: ", Code.INVALID_ARGUMENT),
    (r"Not existing vector name error: ", Code.INVALID_ARGUMENT),
    (r"No appropriate index for faceting", Code.INVALID_ARGUMENT),
    (r"Validation failed: ", Code.INVALID_ARGUMENT),
    (r"Wrong usage of (sparse|multi) vectors", Code.INVALID_ARGUMENT),
    (r"Payload type does not match", Code.INVALID_ARGUMENT),
    (r"No point with id ", Code.NOT_FOUND),
]


def kind_of(error):
    if isinstance(error, Refused):
        return error.code
    for pattern, code in KINDS:
        if re.match(pattern, str(error)):
            return code
    if isinstance(error, (ValueError, TypeError, OverflowError)):
        return Code.INVALID_ARGUMENT
    return Code.INTERNAL


def optional(message, field):
    return getattr(message, field) if message.HasField(field) else None


# Values of the payload.


def value_in(v):
    kind = v.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    if kind == "struct_value":
        return {key: value_in(x) for key, x in v.struct_value.fields.items()}
    if kind == "list_value":
        return [value_in(x) for x in v.list_value.values]
    return getattr(v, kind)


def value_out(x):
    if x is None:
        return json.Value(null_value=0)
    if isinstance(x, bool):
        return json.Value(bool_value=x)
    if isinstance(x, int):
        return json.Value(integer_value=x)
    if isinstance(x, float):
        return json.Value(double_value=x)
    if isinstance(x, str):
        return json.Value(string_value=x)
    if isinstance(x, dict):
        return json.Value(struct_value=json.Struct(fields=payload_out(x)))
    return json.Value(list_value=json.ListValue(values=[value_out(i) for i in x]))


def payload_in(fields):
    return {key: value_in(v) for key, v in fields.items()}


def payload_out(payload):
    return {key: value_out(v) for key, v in (payload or {}).items()}


def id_in(i):
    kind = i.WhichOneof("point_id_options")
    if kind is None:
        raise wrong("a point has no id")
    if kind == "num":
        return i.num
    try:
        return uuid.UUID(i.uuid)
    except ValueError:
        raise wrong(f"Unable to parse UUID: {i.uuid}") from None


def id_out(i):
    return common.PointId(num=i) if isinstance(i, int) else common.PointId(uuid=str(i))


# Vectors.


def sparse_in(indices, values):
    # The engine panics on these.
    if len(indices) != len(values):
        raise wrong("a sparse vector has as many indices as values")
    if len(set(indices)) != len(indices):
        raise wrong("the indices of a sparse vector are unique")
    return edge.SparseVector(list(indices), list(values))


def vector_in(v):
    for kind in ("vector", "variant"):
        if kind in v.DESCRIPTOR.oneofs_by_name:
            chosen = v.WhichOneof(kind)
            if chosen == "dense":
                return list(v.dense.data)
            if chosen == "sparse":
                return sparse_in(v.sparse.indices, v.sparse.values)
            raise unserved(f"a vector of kind {chosen}")
    raise unserved("a vector")


def vectors_in(v):
    if v.WhichOneof("vectors_options") == "vectors":
        return {name: vector_in(x) for name, x in v.vectors.vectors.items()}
    return {}


def vector_out(v):
    if isinstance(v, edge.SparseVector):
        return points.VectorOutput(sparse=points.SparseVector(values=v.values, indices=v.indices))
    return points.VectorOutput(dense=points.DenseVector(data=v))


def vectors_out(v):
    if not isinstance(v, dict):
        return None
    named = {name: vector_out(x) for name, x in v.items()}
    return points.VectorsOutput(vectors=points.NamedVectorsOutput(vectors=named))


# What a reply holds.


def with_payload(selector, default):
    kind = selector.WhichOneof("selector_options")
    if kind is None:
        return default
    if kind == "enable":
        return selector.enable
    if kind == "include":
        return edge.PayloadSelector.Include(list(selector.include.fields))
    return edge.PayloadSelector.Exclude(list(selector.exclude.fields))


def with_vectors(selector):
    kind = selector.WhichOneof("selector_options")
    if kind is None:
        return False
    return selector.enable if kind == "enable" else list(selector.include.names)


def found(p):
    return points.ScoredPoint(
        id=id_out(p.id), score=p.score, version=p.version, payload=payload_out(p.payload), vectors=vectors_out(p.vector)
    )


def retrieved(p):
    return points.RetrievedPoint(id=id_out(p.id), payload=payload_out(p.payload), vectors=vectors_out(p.vector))


# Filters.


def match_in(m):
    kind = m.WhichOneof("match_value")
    value = getattr(m, kind)
    if kind == "boolean":
        return edge.MatchValue(numpy.bool_(value))  # the engine takes Python's True for the number 1
    if kind in ("keyword", "integer"):
        return edge.MatchValue(value)
    if kind == "text":
        return edge.MatchText(value)
    if kind == "keywords":
        return edge.MatchAny(list(value.strings))
    if kind == "except_keywords":
        return edge.MatchExcept(list(value.strings))
    raise unserved(f"a match of kind {kind}")


def condition_in(c):
    kind = c.WhichOneof("condition_one_of")
    if kind == "field":
        f, parts = c.field, {}
        if f.HasField("match"):
            parts["match"] = match_in(f.match)
        if f.HasField("range"):
            parts["range"] = edge.RangeFloat(**{n: optional(f.range, n) for n in ("lt", "gt", "lte", "gte")})
        if not parts:
            raise unserved("this condition on a field")
        return edge.FieldCondition(f.key, **parts)
    if kind == "has_id":
        return edge.HasIdCondition({id_in(i) for i in c.has_id.has_id})
    if kind == "is_empty":
        return edge.IsEmptyCondition(c.is_empty.key)
    if kind == "filter":
        return filter_in(c.filter)
    raise unserved(f"a condition of kind {kind}")


def filter_in(f):
    def conditions(field):
        return [condition_in(c) for c in field] or None

    return edge.Filter(must=conditions(f.must), should=conditions(f.should), must_not=conditions(f.must_not))


def filter_of(message):
    return filter_in(message.filter) if message.HasField("filter") else None


# Queries.


def params_in(message):
    if not message.HasField("params"):
        return None
    p, parts = message.params, {}
    if p.HasField("quantization"):
        z = p.quantization
        parts["quantization"] = edge.QuantizationSearchParams(
            ignore=bool(optional(z, "ignore")), rescore=optional(z, "rescore"), oversampling=optional(z, "oversampling")
        )
    return edge.SearchParams(hnsw_ef=optional(p, "hnsw_ef"), exact=bool(optional(p, "exact")), **parts)


def query_in(message, prefetches):
    if not message.HasField("query"):
        return None
    q = message.query
    kind = q.WhichOneof("variant")
    if kind == "nearest":
        return edge.Query.Nearest(vector_in(q.nearest), using=message.using or None)
    if kind in ("fusion", "rrf") and not prefetches:
        raise wrong("cannot do Fusion without prefetches")
    if kind == "fusion":
        return edge.Fusion.Rrf(k=2) if q.fusion == points.Fusion.RRF else edge.Fusion.Dbsf()
    if kind == "rrf":
        return edge.Fusion.Rrf(k=q.rrf.k if q.rrf.HasField("k") else 2, weights=list(q.rrf.weights) or None)
    raise unserved(f"a query of kind {kind}")


def limit_of(message):
    return message.limit if message.HasField("limit") else 10


def prefetch_in(p):
    inner = [prefetch_in(x) for x in p.prefetch]
    return edge.Prefetch(
        limit=limit_of(p), query=query_in(p, inner), prefetches=inner or None, params=params_in(p), filter=filter_of(p),
        score_threshold=optional(p, "score_threshold"),
    )


def request_in(r):
    prefetches = [prefetch_in(p) for p in r.prefetch]
    return edge.QueryRequest(
        limit=limit_of(r), offset=r.offset or None, query=query_in(r, prefetches), prefetches=prefetches or None, params=params_in(r),
        filter=filter_of(r), score_threshold=optional(r, "score_threshold"), with_payload=with_payload(r.with_payload, False),
        with_vector=with_vectors(r.with_vectors),
    )


# Collections.

DISTANCES = {
    collections.Distance.Cosine: edge.Distance.Cosine,
    collections.Distance.Euclid: edge.Distance.Euclid,
    collections.Distance.Dot: edge.Distance.Dot,
    collections.Distance.Manhattan: edge.Distance.Manhattan,
}


def quantization_in(message):
    if not message.HasField("quantization_config"):
        return None
    c = message.quantization_config
    kind = c.WhichOneof("quantization")
    if kind == "scalar":
        return edge.ScalarQuantizationConfig(
            edge.ScalarType.Int8, quantile=optional(c.scalar, "quantile"), always_ram=optional(c.scalar, "always_ram")
        )
    if kind == "binary":
        return edge.BinaryQuantizationConfig(always_ram=optional(c.binary, "always_ram"))
    raise unserved(f"quantization of kind {kind}")


def vector_params_in(p):
    if not 1 <= p.size <= 65536:
        raise wrong(f"value {p.size} invalid, must be from 1 to 65536")
    if p.distance not in DISTANCES:
        raise wrong("Unknown distance")
    return edge.EdgeVectorParams(size=p.size, distance=DISTANCES[p.distance], on_disk=optional(p, "on_disk"), quantization_config=quantization_in(p))


def config_in(r):
    if r.vectors_config.WhichOneof("config") != "params_map":
        raise unserved("a collection without named vectors")
    sparse = {}
    for name, p in r.sparse_vectors_config.map.items():
        sparse[name] = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if p.modifier == collections.Modifier.Idf else None)
    return edge.EdgeConfig(
        vectors={name: vector_params_in(p) for name, p in r.vectors_config.params_map.map.items()},
        sparse_vectors=sparse or None,
        on_disk_payload=optional(r, "on_disk_payload"),
        quantization_config=quantization_in(r),
    )


class Collection:
    """One shard, and the request that made it, which is kept beside it."""

    def __init__(self, folder, request, shard):
        self.folder, self.request, self.shard = folder, request, shard
        self.writing = threading.Lock()

    @classmethod
    def create(cls, folder, request):
        config = config_in(request)
        os.makedirs(folder)
        try:
            shard = edge.EdgeShard.create(os.path.join(folder, "shard"), config)
        except BaseException:
            shutil.rmtree(folder)
            raise
        with open(os.path.join(folder, "request.new"), "wb") as f:
            f.write(request.SerializeToString())
        os.rename(f.name, os.path.join(folder, "request"))
        return cls(folder, request, shard)

    @classmethod
    def load(cls, folder):
        request = collections.CreateCollection()
        with open(os.path.join(folder, "request"), "rb") as f:
            request.ParseFromString(f.read())
        return cls(folder, request, edge.EdgeShard.load(os.path.join(folder, "shard")))


class Server:
    """The calls, by their names in the protocol; each runs in a thread."""

    def __init__(self, folder):
        self.folder, self.collections, self.operations = folder, {}, 0
        self.lock = threading.Lock()
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if not os.path.exists(os.path.join(path, "request")):
                shutil.rmtree(path)  # killed while it was made
                continue
            c = Collection.load(path)
            self.collections[c.request.collection_name] = c

    def collection(self, name):
        c = self.collections.get(name)
        if c is None:
            raise Refused(Code.NOT_FOUND, f"Not found: Collection `{name}` doesn't exist!")
        return c

    def create(self, r):
        name = r.collection_name
        with self.lock:
            if name in self.collections:
                raise Refused(Code.ALREADY_EXISTS, f"Wrong input: Collection `{name}` already exists!")
            self.collections[name] = Collection.create(os.path.join(self.folder, name.encode().hex()), r)
        return collections.CollectionOperationResponse(result=True)

    def drop(self, r):
        with self.lock:
            c = self.collections.pop(r.collection_name, None)
            if c:
                with c.writing:
                    c.shard.close()
                    shutil.rmtree(c.folder)
        return collections.CollectionOperationResponse(result=c is not None)

    def exists(self, r):
        return collections.CollectionExistsResponse(result=collections.CollectionExists(exists=r.collection_name in self.collections))

    def list(self, r):
        return collections.ListCollectionsResponse(collections=[collections.CollectionDescription(name=n) for n in self.collections])

    def describe(self, r):
        c = self.collection(r.collection_name)
        info = c.shard.info()
        out = collections.CollectionInfo(
            status=collections.CollectionStatus.Green, segments_count=info.segments_count, points_count=info.points_count,
            indexed_vectors_count=info.indexed_vectors_count,
        )
        out.optimizer_status.ok = True
        params = out.config.params
        params.shard_number = c.request.shard_number or 1
        params.replication_factor = c.request.replication_factor or 1
        params.on_disk_payload = c.request.on_disk_payload
        params.vectors_config.CopyFrom(c.request.vectors_config)
        params.sparse_vectors_config.CopyFrom(c.request.sparse_vectors_config)
        if c.request.HasField("quantization_config"):
            out.config.quantization_config.CopyFrom(c.request.quantization_config)
        for key, value in c.request.metadata.items():
            out.config.metadata[key].CopyFrom(value)
        for field, schema in info.payload_schema.items():
            entry = out.payload_schema[field]
            entry.data_type = collections.PayloadSchemaType.Keyword
            entry.points = schema.points
            if isinstance(schema.params, edge.KeywordIndexParams):
                entry.params.keyword_index_params.is_tenant = bool(schema.params.is_tenant)
        return collections.GetCollectionInfoResponse(result=out)

    def update(self, r, operation):
        c = self.collection(r.collection_name)
        with c.writing:
            c.shard.update(operation)
            self.operations += 1
            number = self.operations
        status = points.UpdateStatus.Completed if r.wait else points.UpdateStatus.Acknowledged
        return points.PointsOperationResponse(result=points.UpdateResult(operation_id=number, status=status))

    def upsert(self, r):
        condition = filter_in(r.update_filter) if r.HasField("update_filter") else None
        new = [edge.Point(id_in(p.id), vectors_in(p.vectors), payload_in(p.payload)) for p in r.points]
        return self.update(r, edge.UpdateOperation.upsert_points(new, condition))

    def delete(self, r):
        if r.points.WhichOneof("points_selector_one_of") == "points":
            return self.update(r, edge.UpdateOperation.delete_points([id_in(i) for i in r.points.points.ids]))
        return self.update(r, edge.UpdateOperation.delete_points_by_filter(filter_in(r.points.filter)))

    def set_payload(self, r):
        if r.HasField("key"):
            raise unserved("setting a part of the payload")
        payload, selector = payload_in(r.payload), r.points_selector
        if selector.WhichOneof("points_selector_one_of") == "points":
            return self.update(r, edge.UpdateOperation.set_payload([id_in(i) for i in selector.points.ids], payload, None))
        return self.update(r, edge.UpdateOperation.set_payload_by_filter(filter_in(selector.filter), payload, None))

    def index(self, r):
        if r.field_type != points.FieldType.FieldTypeKeyword:
            raise unserved("an index that is not of keywords")
        p = r.field_index_params.keyword_index_params
        return self.update(r, edge.UpdateOperation.create_field_index(r.field_name, edge.KeywordIndexParams(is_tenant=optional(p, "is_tenant"), on_disk=optional(p, "on_disk"))))

    def get(self, r):
        shard = self.collection(r.collection_name).shard
        records = shard.retrieve([id_in(i) for i in r.ids], with_payload(r.with_payload, True), with_vectors(r.with_vectors))
        return points.GetResponse(result=[retrieved(p) for p in records])

    def scroll(self, r):
        shard = self.collection(r.collection_name).shard
        records, following = shard.scroll(
            edge.ScrollRequest(
                offset=id_in(r.offset) if r.HasField("offset") else None, limit=limit_of(r), filter=filter_of(r),
                with_payload=with_payload(r.with_payload, True), with_vector=with_vectors(r.with_vectors),
            )
        )
        return points.ScrollResponse(result=[retrieved(p) for p in records], next_page_offset=None if following is None else id_out(following))

    def count(self, r):
        n = self.collection(r.collection_name).shard.count(edge.CountRequest(filter=filter_of(r), exact=r.exact if r.HasField("exact") else True))
        return points.CountResponse(result=points.CountResult(count=n))

    def facet(self, r):
        hits = self.collection(r.collection_name).shard.facet(edge.FacetRequest(r.key, limit=limit_of(r), exact=bool(optional(r, "exact")), filter=filter_of(r))).hits
        return points.FacetResponse(hits=[points.FacetHit(value=points.FacetValue(string_value=h.value), count=h.count) for h in hits])

    def query(self, r):
        return points.QueryResponse(result=[found(p) for p in self.collection(r.collection_name).shard.query(request_in(r))])

    def query_batch(self, r):
        c = self.collection(r.collection_name)
        return points.QueryBatchResponse(result=[points.BatchResult(result=[found(p) for p in c.shard.query(request_in(q))]) for q in r.query_points])

    def close(self):
        for c in self.collections.values():
            c.shard.close()


def served(call):
    async def handler(_, request, context):
        try:
            return await asyncio.to_thread(call, request)
        except grpc.aio.AbortError:
            raise
        except BaseException as error:  # a panic of the engine is no Exception
            await context.abort(kind_of(error), str(error))

    return handler


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--version", default="1.17.1")
    parser.add_argument("--max-message", type=int, default=64 << 20)
    parser.add_argument("--optimize", action="store_true", help="build indexes of vectors, as a server does; takes all processors")
    options = parser.parse_args()

    s = Server(options.folder)
    of_collections = {"Create": s.create, "Delete": s.drop, "CollectionExists": s.exists, "List": s.list, "Get": s.describe}
    of_points = {
        "Upsert": s.upsert, "Delete": s.delete, "Get": s.get, "Scroll": s.scroll, "Count": s.count, "Facet": s.facet, "Query": s.query,
        "QueryBatch": s.query_batch, "CreateFieldIndex": s.index, "SetPayload": s.set_payload,
    }

    def health(_):
        return qdrant.HealthCheckReply(title="Qdrant's edge engine behind a test front", version=options.version)

    def service(base, calls):
        return type(base.__name__, (base,), {name: served(call) for name, call in calls.items()})()

    server = grpc.aio.server(options=[
        ("grpc.max_receive_message_length", options.max_message), ("grpc.max_send_message_length", 256 << 20),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000), ("grpc.so_reuseport", 0),
    ])
    collections_service.add_CollectionsServicer_to_server(service(collections_service.CollectionsServicer, of_collections), server)
    points_service.add_PointsServicer_to_server(service(points_service.PointsServicer, of_points), server)
    qdrant_service.add_QdrantServicer_to_server(service(qdrant_service.QdrantServicer, {"HealthCheck": health}), server)
    port = server.add_insecure_port(f"127.0.0.1:{options.port}")
    await server.start()
    print("ready", port, flush=True)

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def optimize():
        while True:
            await asyncio.sleep(1)
            for c in list(s.collections.values()):
                await asyncio.to_thread(c.shard.optimize)

    optimizing = asyncio.create_task(optimize()) if options.optimize else None
    await stop.wait()
    if optimizing:
        optimizing.cancel()
    await server.stop(1)
    s.close()


asyncio.run(main())
