/* SPDX-License-Identifier: MIT */
#pragma once
#include <qrencode.h>
