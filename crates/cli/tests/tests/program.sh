#!/bin/sh
# Stands for the binary where its size would cost time: the packing test compresses it.
exec "$ANABRANCH_BINARY" "$@"
