# The wheels are built in the first stage; the second has neither compiler nor sources.
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY reachnode reachnode
COPY sim sim
RUN python -m venv /opt/reachnode && /opt/reachnode/bin/pip install --no-cache-dir .

FROM python:3.13-slim
COPY --from=build /opt/reachnode /opt/reachnode
RUN useradd --system --user-group --uid 7400 --no-create-home reachnode \
    && install --directory --owner=reachnode --group=reachnode --mode=0700 /var/lib/reachnode
ENV PATH=/opt/reachnode/bin:$PATH
USER reachnode
WORKDIR /var/lib/reachnode
VOLUME /var/lib/reachnode
EXPOSE 7400 7401
STOPSIGNAL SIGTERM
# Options follow the image's name. Both addresses are loopback unless they are given:
# outside the container nobody reaches a node that was not told how it is secured.
ENTRYPOINT ["reachnode", "serve", "--data-dir", "/var/lib/reachnode"]
