// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/nccl/gpu.h"

#include <dlfcn.h>

/* The driver is never loaded for this, and never linked: a job that has none has no GPU. */
void ft_gpu_bus_id(char text[FT_SEGMENT_TEXT])
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*get_device)(int *device);
    int (*get_bus_id)(char *to, int bytes, int device);
    int device;

    text[0] = '\0';
    if (!driver)
        return;
    get_device = (int (*)(int *))dlsym(driver, "cuCtxGetDevice");
    get_bus_id = (int (*)(char *, int, int))dlsym(driver, "cuDeviceGetPCIBusId");
    if (!get_device || !get_bus_id || get_device(&device) ||
        get_bus_id(text, FT_SEGMENT_TEXT, device))
        text[0] = '\0';
    text[FT_SEGMENT_TEXT - 1] = '\0';
    dlclose(driver);
}
