/* As Embedded Coder writes it for a 64-bit PC, in part. */
#ifndef RTWTYPES_H
#define RTWTYPES_H
typedef signed char int8_T;
typedef unsigned char uint8_T;
typedef int int32_T;
typedef unsigned int uint32_T;
typedef double real_T;
typedef unsigned char boolean_T;
#endif
