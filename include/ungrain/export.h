/* What a shared libungrain exports: the functions of ungrain.h, each marked UNGRAIN_API, and what the C++
 * headers declare between UNGRAIN_API_BEGIN and UNGRAIN_API_END. Everything else is hidden. On Windows a DLL
 * exports the C functions alone: C++ programs link the static library there. C99. */
#ifndef UNGRAIN_EXPORT_H
#define UNGRAIN_EXPORT_H

#if defined(_WIN32)
#if defined(ungrain_EXPORTS) /* set by CMake where the DLL itself is compiled */
#define UNGRAIN_API __declspec(dllexport)
#elif defined(UNGRAIN_SHARED) /* set for those who link the DLL */
#define UNGRAIN_API __declspec(dllimport)
#else
#define UNGRAIN_API
#endif
#define UNGRAIN_API_BEGIN
#define UNGRAIN_API_END
#define UNGRAIN_HIDDEN
#else
#define UNGRAIN_API __attribute__((visibility("default")))
#define UNGRAIN_API_BEGIN _Pragma("GCC visibility push(default)")
#define UNGRAIN_API_END _Pragma("GCC visibility pop")
#define UNGRAIN_HIDDEN __attribute__((visibility("hidden")))
#endif

#endif
