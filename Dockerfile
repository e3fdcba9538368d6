# PostgreSQL with hashgraph_join, on the CPU:
#
#   docker build -t hashgraph_join .
#   docker run -e POSTGRES_PASSWORD=secret -p 5432:5432 --shm-size=1g hashgraph_join
#   psql -h localhost -U postgres -c "SELECT * FROM hashgraph_join_info()"
#
# --build-arg POSTGRES=17: 15 to 18.  The image is PostgreSQL's own, whose settings it
# takes (https://hub.docker.com/_/postgres), with the extension in every new database.
# Workers of parallel queries share memory in /dev/shm: 64 MB of it is too little.

ARG POSTGRES=17
FROM postgres:${POSTGRES}-bookworm AS build
RUN apt-get update \
	&& apt-get install -y --no-install-recommends gcc libc6-dev make "postgresql-server-dev-$PG_MAJOR"
WORKDIR /src
COPY Makefile hashgraph_join.control ./
COPY sql sql
COPY cuda cuda
COPY src src
RUN make -j"$(nproc)" with_cuda=no with_llvm=no PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" \
	&& make install with_cuda=no with_llvm=no DESTDIR=/out PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config"

FROM postgres:${POSTGRES}-bookworm
COPY --from=build /out/ /
RUN printf '%s\n' "CREATE EXTENSION hashgraph_join;" '\c template1' "CREATE EXTENSION hashgraph_join;" \
	>/docker-entrypoint-initdb.d/10_hashgraph_join.sql
CMD ["postgres", "-c", "shared_preload_libraries=hashgraph_join"]
