# SPDX-License-Identifier: BSL-1.0
from .command import main

main()
