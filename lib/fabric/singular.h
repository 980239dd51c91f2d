// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_SINGULAR_H
#define FT_FABRIC_SINGULAR_H
/*
 * Singular value decomposition of a small dense matrix, A = U S V', by one-sided Jacobi rotations
 * (Golub and Van Loan, Matrix Computations, 4th edition, 8.6.3), which finds small singular values
 * to a high relative accuracy.
 *
 * Our own and not LAPACK's: what stands for BLAS on many machines (OpenBLAS) starts threads when a
 * program is loaded, before it could drop its privileges, and these keep them; GSL's licence is not
 * ours. Pure. Thread: any.
 */
#include <stddef.h>

/* a: rows x columns, column by column, rows >= columns; it becomes U S. v: columns x columns,
 * column by column. s: the singular values, in falling order, as are the columns of the others.
 * -EDOM: a number is not finite, or it did not converge. */
int ft_singular(double *a, size_t rows, size_t columns, double *s, double *v);

#endif
