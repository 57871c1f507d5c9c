# Small dense linear algebra for the pursuit's kernels, in C: for matrices of a few rows a call of BLAS costs more than the
# work. Matrices are column-major, and symmetric ones are stored completely. Nothing here holds the GIL.

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    /* GCC compiles each function for processors with AVX-512, with AVX2, and for all others; the processor decides. */
    #if defined(__GNUC__)
    #define INLINED static inline __attribute__((always_inline))
    #define INDEPENDENT _Pragma("GCC ivdep")
    #else
    #define INLINED static inline
    #define INDEPENDENT
    #endif
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
    #define BY_PROCESSOR(name, parameters, arguments)                                                                  \
        __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512"), noinline))                 \
        static int name ## _avx512 parameters { return name ## _body arguments; }                                      \
        __attribute__((target("avx2,fma"), noinline))                                                                  \
        static int name ## _avx2 parameters { return name ## _body arguments; }                                        \
        static int name parameters {                                                                                   \
            if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))                              \
                return name ## _avx512 arguments;                                                                      \
            if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                                       \
                return name ## _avx2 arguments;                                                                        \
            return name ## _body arguments;                                                                            \
        }
    #else
    #define BY_PROCESSOR(name, parameters, arguments) static int name parameters { return name ## _body arguments; }
    #endif

    /* Up to so many rows, loops over rows are unrolled: `call` is compiled for each number of them. */
    #define FEW_ROWS 8
    #define BY_ROWS(rows, call)                                                                                         \
        switch (rows) {                                                                                                \
            case 1: { enum { ROWS = 1 }; call; break; }                                                                \
            case 2: { enum { ROWS = 2 }; call; break; }                                                                \
            case 3: { enum { ROWS = 3 }; call; break; }                                                                \
            case 4: { enum { ROWS = 4 }; call; break; }                                                                \
            case 5: { enum { ROWS = 5 }; call; break; }                                                                \
            case 6: { enum { ROWS = 6 }; call; break; }                                                                \
            case 7: { enum { ROWS = 7 }; call; break; }                                                                \
            case 8: { enum { ROWS = 8 }; call; break; }                                                                \
        }

    /* S += t v v', out = S x, *k = x'out, *q = out'out, in one pass over S (height, D), four columns at a time. The
       entries of S and v from row D on are zero. */
    INLINED void update_columns(int D, int height, double t, const double* restrict v, double* restrict S,
                                const double* restrict x, double* restrict out, double* k, double* q) {
        int a, b;
        double inner = 0, square = 0;
        for (a = 0; a < height; a++) out[a] = 0;
        for (b = 0; b + 3 < D; b += 4) {
            double *S0 = S + (size_t) b * height, *S1 = S0 + height, *S2 = S1 + height, *S3 = S2 + height;
            const double t0 = t * v[b], t1 = t * v[b + 1], t2 = t * v[b + 2], t3 = t * v[b + 3];
            const double x0 = x[b], x1 = x[b + 1], x2 = x[b + 2], x3 = x[b + 3];
            INDEPENDENT for (a = 0; a < height; a++) {
                const double m0 = S0[a] + t0 * v[a], m1 = S1[a] + t1 * v[a];
                const double m2 = S2[a] + t2 * v[a], m3 = S3[a] + t3 * v[a];
                S0[a] = m0; S1[a] = m1; S2[a] = m2; S3[a] = m3;
                out[a] += (x0 * m0 + x1 * m1) + (x2 * m2 + x3 * m3);
            }
        }
        for (; b < D; b++) {
            double* S0 = S + (size_t) b * height;
            const double t0 = t * v[b], x0 = x[b];
            INDEPENDENT for (a = 0; a < height; a++) {
                const double m0 = S0[a] + t0 * v[a];
                S0[a] = m0;
                out[a] += x0 * m0;
            }
        }
        for (a = 0; a < D; a++) {
            inner += x[a] * out[a];
            square += out[a] * out[a];
        }
        *k = inner;
        *q = square;
    }

    INLINED int update_and_multiply_body(int D, int height, double t, const double* v, double* S, const double* x,
                                         double* out, double* k, double* q) {
        if (height <= FEW_ROWS) { BY_ROWS(D, update_columns(ROWS, ROWS < 5 ? ROWS : 8, t, v, S, x, out, k, q)) }
        else if (height == 16) update_columns(D, 16, t, v, S, x, out, k, q);
        else if (height == 32) update_columns(D, 32, t, v, S, x, out, k, q);
        else update_columns(D, height, t, v, S, x, out, k, q);
        return 0;
    }
    BY_PROCESSOR(update_and_multiply,
                 (int D, int height, double t, const double* v, double* S, const double* x, double* out, double* k, double* q),
                 (D, height, t, v, S, x, out, k, q))

    /* Exact coordinate steps on the columns of `order`, for the identity at one point: with v = S x, k = x'v and q = v'v the
       step is (sqrt(q) - 1) / k, but no further than to w = 0. S is updated while it is multiplied by the next column;
       v and ahead hold `height` numbers each, S and they are zero from row D on. */
    INLINED void step_columns(int D, int height, const double* x, double* restrict w, double* S, const int* order, int count,
                              double* v, double* ahead) {
        int j, a;
        double change = 0, k, q;
        for (a = 0; a < height; a++) v[a] = ahead[a] = 0;
        for (j = 0; j < count; j++) {
            const int p = order[j];
            double root, d, *last = v;
            update_columns(D, height, change, v, S, x + (size_t) p * D, ahead, &k, &q);
            v = ahead;
            ahead = last;
            root = sqrt(q);
            d = (root - 1) / k;
            if (d > -w[p]) {
                change = (1 - root) / (k * root);
                w[p] += d;
            } else {
                change = w[p] / (1 - w[p] * k);
                w[p] = 0;
            }
        }
        if (count > 0) update_columns(D, height, change, v, S, x + (size_t) order[count - 1] * D, ahead, &k, &q);
    }

    INLINED int sweep_identity_body(int D, int height, const double* x, double* w, double* S, const int* order, int count,
                                    double* v, double* ahead) {
        if (height <= FEW_ROWS) { BY_ROWS(D, step_columns(ROWS, ROWS < 5 ? ROWS : 8, x, w, S, order, count, v, ahead)) }
        else if (height == 16) step_columns(D, 16, x, w, S, order, count, v, ahead);
        else if (height == 32) step_columns(D, 32, x, w, S, order, count, v, ahead);
        else step_columns(D, height, x, w, S, order, count, v, ahead);
        return 0;
    }
    BY_PROCESSOR(sweep_identity,
                 (int D, int height, const double* x, double* w, double* S, const int* order, int count, double* v, double* ahead),
                 (D, height, x, w, S, order, count, v, ahead))

    /* q[p] (+)= the sum of squares of column p of u (r, count). */
    INLINED int column_squares_body(int r, int count, const double* restrict u, double* restrict q, int add) {
        int p, a;
        for (p = 0; p < count; p++) {
            double total = 0;
            for (a = 0; a < r; a++) total += u[(size_t) p * r + a] * u[(size_t) p * r + a];
            q[p] = add ? q[p] + total : total;
        }
        return 0;
    }
    BY_PROCESSOR(column_squares, (int r, int count, const double* u, double* q, int add), (r, count, u, q, add))

    /* k[p] = the inner product of columns p of x and v (D, count), or the larger of that and what k[p] holds. */
    INLINED int column_products_body(int D, int count, const double* restrict x, const double* restrict v,
                                     double* restrict k, int larger) {
        int p, a;
        for (p = 0; p < count; p++) {
            double total = 0;
            for (a = 0; a < D; a++) total += x[(size_t) p * D + a] * v[(size_t) p * D + a];
            k[p] = larger && k[p] > total ? k[p] : total;
        }
        return 0;
    }
    BY_PROCESSOR(column_products, (int D, int count, const double* x, const double* v, double* k, int larger),
                 (D, count, x, v, k, larger))

    /* out = the sum of w[p] v x' over columns p of x and v (D, count). */
    INLINED int weighted_products_body(int D, int count, const double* restrict x, const double* restrict v,
                                       const double* restrict w, double* restrict out) {
        int p, a, b;
        for (a = 0; a < D * D; a++) out[a] = 0;
        for (p = 0; p < count; p++)
            if (w[p] > 0)
                for (b = 0; b < D; b++) {
                    const double t = w[p] * x[(size_t) p * D + b];
                    for (a = 0; a < D; a++) out[b * D + a] += t * v[(size_t) p * D + a];
                }
        return 0;
    }
    BY_PROCESSOR(weighted_products, (int D, int count, const double* x, const double* v, const double* w, double* out),
                 (D, count, x, v, w, out))

    /* out = |N| |x| for N (r, D): the sizes of the terms of N x, summed. */
    INLINED int absolute_product_body(int D, int r, const double* restrict N, const double* restrict x,
                                      double* restrict out) {
        int a, b;
        for (b = 0; b < r; b++) out[b] = 0;
        for (a = 0; a < D; a++) {
            const double t = fabs(x[a]);
            for (b = 0; b < r; b++) out[b] += t * fabs(N[(size_t) a * r + b]);
        }
        return 0;
    }
    BY_PROCESSOR(absolute_product, (int D, int r, const double* N, const double* x, double* out), (D, r, N, x, out))

    /* The inverse of `ridge` I + the sum of w x x' over m columns; nonzero where it is not positive definite. */
    INLINED int invert(int D, int m, const double* restrict x, const double* restrict w, double ridge,
                            double* restrict S) {
        int p, a, b, c;
        double L[FEW_ROWS * FEW_ROWS];
        for (a = 0; a < D * D; a++) L[a] = 0;
        for (p = 0; p < m; p++) {
            const double* column = x + (size_t) p * D;
            if (w[p] > 0)
                for (b = 0; b < D; b++) {
                    const double t = w[p] * column[b];
                    for (a = 0; a < D; a++) L[b * D + a] += t * column[a];
                }
        }
        for (b = 0; b < D; b++) { /* L L' = M, then L becomes its inverse */
            double pivot = L[b * D + b] + ridge;
            for (c = 0; c < b; c++) pivot -= L[c * D + b] * L[c * D + b];
            if (!(pivot > 0)) return 1;
            pivot = 1 / sqrt(pivot);
            for (a = b + 1; a < D; a++) {
                double t = L[b * D + a];
                for (c = 0; c < b; c++) t -= L[c * D + a] * L[c * D + b];
                L[b * D + a] = t * pivot;
            }
            L[b * D + b] = pivot;
        }
        for (b = 0; b < D; b++)
            for (a = b + 1; a < D; a++) {
                double t = 0;
                for (c = b; c < a; c++) t -= L[c * D + a] * L[b * D + c];
                L[b * D + a] = t * L[a * D + a];
            }
        for (b = 0; b < D; b++)
            for (a = b; a < D; a++) {
                double t = 0;
                for (c = a; c < D; c++) t += L[a * D + c] * L[b * D + c];
                S[b * D + a] = S[a * D + b] = t;
            }
        return 0;
    }

    INLINED int invert_few_rows_body(int D, int m, const double* x, const double* w, double ridge, double* S) {
        BY_ROWS(D, return invert(ROWS, m, x, w, ridge, S))
        return 1;
    }
    BY_PROCESSOR(invert_few_rows, (int D, int m, const double* x, const double* w, double ridge, double* S),
                 (D, m, x, w, ridge, S))

    /* v = S x and q = v'v for each of m columns x. */
    INLINED void screen(int D, int m, const double* restrict S, const double* restrict x, double* restrict v,
                             double* restrict q) {
        int p, a, b;
        for (p = 0; p < m; p++) {
            double out[FEW_ROWS], total = 0;
            for (a = 0; a < D; a++) out[a] = 0;
            for (b = 0; b < D; b++)
                for (a = 0; a < D; a++) out[a] += S[b * D + a] * x[(size_t) p * D + b];
            for (a = 0; a < D; a++) {
                v[(size_t) p * D + a] = out[a];
                total += out[a] * out[a];
            }
            q[p] = total;
        }
    }

    INLINED int screen_few_rows_body(int D, int m, const double* S, const double* x, double* v, double* q) {
        BY_ROWS(D, screen(ROWS, m, S, x, v, q))
        return 0;
    }
    BY_PROCESSOR(screen_few_rows, (int D, int m, const double* S, const double* x, double* v, double* q), (D, m, S, x, v, q))

    /* H = 2 K o L in the lower triangle, K = x'v, L = v'v, for m columns x and v. */
    INLINED void curvature(int D, int m, const double* restrict x, const double* restrict v, double* restrict H) {
        int p, r, a;
        for (p = 0; p < m; p++)
            for (r = p; r < m; r++) {
                double k = 0, l = 0;
                for (a = 0; a < D; a++) {
                    k += x[p * D + a] * v[r * D + a];
                    l += v[p * D + a] * v[r * D + a];
                }
                H[(size_t) p * m + r] = 2 * k * l;
            }
    }

    INLINED int hessian_few_rows_body(int D, int m, const double* x, const double* v, double* H) {
        BY_ROWS(D, curvature(ROWS, m, x, v, H))
        return 0;
    }
    BY_PROCESSOR(hessian_few_rows, (int D, int m, const double* x, const double* v, double* H), (D, m, x, v, H))

    /* H[p, p..] = 2 K o L (+ what H holds), the lower triangle of the product of two blocks (height, width). */
    INLINED int lower_products_body(int m, int height, int width, const double* restrict K,
                                            const double* restrict L, double* restrict H, int add) {
        int a, b;
        for (b = 0; b < width; b++)
            for (a = b; a < height; a++) {
                const double t = 2 * K[(size_t) b * height + a] * L[(size_t) b * height + a];
                H[(size_t) b * m + a] = add ? H[(size_t) b * m + a] + t : t;
            }
        return 0;
    }
    BY_PROCESSOR(lower_products, (int m, int height, int width, const double* K, const double* L, double* H, int add), (m, height, width, K, L, H, add))

    /* Columns b to b + 3 of H lose their products with columns c to c + 3 of the factor, from row b on. */
    INLINED void subtract_four(int n, int b, int c, double* restrict H) {
        const double *L0 = H + (size_t) c * n, *L1 = L0 + n, *L2 = L1 + n, *L3 = L2 + n;
        double *H0 = H + (size_t) b * n, *H1 = H0 + n, *H2 = H1 + n, *H3 = H2 + n;
        const double p0 = L0[b], p1 = L0[b + 1], p2 = L0[b + 2], p3 = L0[b + 3];
        const double q0 = L1[b], q1 = L1[b + 1], q2 = L1[b + 2], q3 = L1[b + 3];
        const double r0 = L2[b], r1 = L2[b + 1], r2 = L2[b + 2], r3 = L2[b + 3];
        const double s0 = L3[b], s1 = L3[b + 1], s2 = L3[b + 2], s3 = L3[b + 3];
        int a;
        INDEPENDENT for (a = b; a < n; a++) {
            const double l0 = L0[a], l1 = L1[a], l2 = L2[a], l3 = L3[a];
            H0[a] -= (p0 * l0 + q0 * l1) + (r0 * l2 + s0 * l3);
            H1[a] -= (p1 * l0 + q1 * l1) + (r1 * l2 + s1 * l3);
            H2[a] -= (p2 * l0 + q2 * l1) + (r2 * l2 + s2 * l3);
            H3[a] -= (p3 * l0 + q3 * l1) + (r3 * l2 + s3 * l3);
        }
    }

    /* Cholesky in the lower triangle, four columns at a time; nonzero where H is not positive definite. */
    INLINED int cholesky_body(int n, double* restrict H) {
        int a, b, c, d, wide;
        for (b = 0; b < n; b += 4) {
            wide = n - b < 4 ? n - b : 4;
            if (wide == 4)
                for (c = 0; c < b; c += 4) subtract_four(n, b, c, H);
            for (d = b; d < b + wide; d++) {
                double* column = H + (size_t) d * n;
                double pivot;
                for (c = wide == 4 ? b : 0; c < d; c++) {
                    const double* L = H + (size_t) c * n;
                    const double t = L[d];
                    INDEPENDENT for (a = d; a < n; a++) column[a] -= t * L[a];
                }
                if (!(column[d] > 0)) return 1;
                column[d] = sqrt(column[d]);
                pivot = 1 / column[d];
                for (a = d + 1; a < n; a++) column[a] *= pivot;
            }
        }
        return 0;
    }
    BY_PROCESSOR(cholesky, (int n, double* H), (n, H))

    /* x = (L L')^-1 x for the factor that `cholesky` leaves. */
    INLINED int cholesky_solve_body(int n, const double* restrict L, double* restrict x) {
        int a, b;
        for (b = 0; b < n; b++) {
            const double t = x[b] /= L[(size_t) b * n + b];
            INDEPENDENT for (a = b + 1; a < n; a++) x[a] -= t * L[(size_t) b * n + a];
        }
        for (b = n - 1; b >= 0; b--) {
            double t = x[b];
            for (a = b + 1; a < n; a++) t -= L[(size_t) b * n + a] * x[a];
            x[b] = t / L[(size_t) b * n + b];
        }
        return 0;
    }
    BY_PROCESSOR(cholesky_solve, (int n, const double* L, double* x), (n, L, x))

    /* Column p of F (N, m), N = D(D+1)/2, is root[p] c o z z' of z = column p of Z (D, m), one entry for each pair of rows. */
    INLINED int pair_features_body(int D, int m, const double* restrict Z, const double* restrict c,
                                           const double* restrict root, double* restrict F) {
        int p, a, b;
        for (p = 0; p < m; p++) {
            const double* restrict z = Z + (size_t) p * D;
            const double* restrict factor = c;
            for (b = 0; b < D; b++) {
                const double t = root[p] * z[b];
                for (a = b; a < D; a++) F[a - b] = t * factor[a - b] * z[a];
                F += D - b;
                factor += D - b;
            }
        }
        return 0;
    }
    BY_PROCESSOR(pair_features, (int D, int m, const double* Z, const double* c, const double* root, double* F), (D, m, Z, c, root, F))

    /* Eigenvalues and eigenvectors (columns of V) of a symmetric matrix, by Jacobi's rotations; S is overwritten. */
    INLINED void jacobi(int D, double* restrict S, double* restrict V, double* restrict values) {
        int a, b, c, turn;
        for (a = 0; a < D * D; a++) V[a] = a % (D + 1) == 0;
        for (turn = 0; turn < 12; turn++) {
            double off = 0, all = 0;
            for (b = 0; b < D; b++) {
                all += S[b * D + b] * S[b * D + b];
                for (a = b + 1; a < D; a++) off += S[b * D + a] * S[b * D + a];
            }
            if (off <= 1e-32 * all) break;
            for (b = 0; b < D; b++)
                for (a = b + 1; a < D; a++) {
                    const double size = S[b * D + a];
                    double tau, t, c0, s0;
                    if (size == 0) continue;
                    tau = (S[a * D + a] - S[b * D + b]) / (2 * size);
                    t = (tau < 0 ? -1 : 1) / (fabs(tau) + sqrt(1 + tau * tau));
                    c0 = 1 / sqrt(1 + t * t);
                    s0 = t * c0;
                    for (c = 0; c < D; c++) {
                        const double l = S[b * D + c], r = S[a * D + c], p = V[b * D + c], q = V[a * D + c];
                        S[b * D + c] = c0 * l - s0 * r;
                        S[a * D + c] = s0 * l + c0 * r;
                        V[b * D + c] = c0 * p - s0 * q;
                        V[a * D + c] = s0 * p + c0 * q;
                    }
                    for (c = 0; c < D; c++) {
                        const double l = S[c * D + b], r = S[c * D + a];
                        S[c * D + b] = c0 * l - s0 * r;
                        S[c * D + a] = s0 * l + c0 * r;
                    }
                }
        }
        for (a = 0; a < D; a++) values[a] = S[a * D + a];
    }
    INLINED int eigen_few_rows_body(int D, double* S, double* V, double* values) {
        BY_ROWS(D, jacobi(ROWS, S, V, values))
        return 0;
    }
    BY_PROCESSOR(eigen_few_rows, (int D, double* S, double* V, double* values), (D, S, V, values))

    /* For F (N, m), N = D(D+1)/2: H = I + F F' in the lower triangle; y = F g; g = F'y. */
    INLINED void gram(int N, int m, const double* restrict F, double* restrict H) {
        int p, a, b;
        for (b = 0; b < N; b++)
            for (a = b; a < N; a++) H[b * N + a] = a == b;
        for (p = 0; p + 3 < m; p += 4) {
            const double *F0 = F + (size_t) p * N, *F1 = F0 + N, *F2 = F1 + N, *F3 = F2 + N;
            for (b = 0; b < N; b++)
                for (a = b; a < N; a++)
                    H[b * N + a] += (F0[b] * F0[a] + F1[b] * F1[a]) + (F2[b] * F2[a] + F3[b] * F3[a]);
        }
        for (; p < m; p++)
            for (b = 0; b < N; b++)
                for (a = b; a < N; a++) H[b * N + a] += F[(size_t) p * N + b] * F[(size_t) p * N + a];
    }
    INLINED int gram_few_rows_body(int D, int m, const double* F, double* H) {
        BY_ROWS(D, gram(ROWS * (ROWS + 1) / 2, m, F, H))
        return 0;
    }
    BY_PROCESSOR(gram_few_rows, (int D, int m, const double* F, double* H), (D, m, F, H))

    INLINED int combine_columns_body(int N, int m, const double* restrict F, const double* restrict g, double* restrict y) {
        int p, a;
        for (a = 0; a < N; a++) y[a] = 0;
        for (p = 0; p < m; p++)
            for (a = 0; a < N; a++) y[a] += g[p] * F[(size_t) p * N + a];
        return 0;
    }
    BY_PROCESSOR(combine_columns, (int N, int m, const double* F, const double* g, double* y), (N, m, F, g, y))

    INLINED int multiply_columns_body(int N, int m, const double* restrict F, const double* restrict y, double* restrict g) {
        int p, a;
        for (p = 0; p < m; p++) {
            double total = 0;
            for (a = 0; a < N; a++) total += F[(size_t) p * N + a] * y[a];
            g[p] = total;
        }
        return 0;
    }
    BY_PROCESSOR(multiply_columns, (int N, int m, const double* F, const double* y, double* g), (N, m, F, y, g))

    /* keys[p] += a hash of row[p] (splitmix64 with any odd number, and about half the bits), times `factor`. */
    INLINED int hash_row_body(ptrdiff_t count, const double* restrict row, uint64_t factor, uint64_t* restrict keys) {
        ptrdiff_t p;
        const uint64_t odd = 0x9E3779B97F4A7C15u;
        for (p = 0; p < count; p++) {
            uint64_t bits;
            memcpy(&bits, row + p, sizeof bits);
            bits = row[p] == 0 ? 0 : bits; /* -0 is 0 */
            bits = (bits ^ (bits >> 31)) * odd;
            keys[p] += (bits ^ (bits >> 31)) * factor;
        }
        return 0;
    }
    BY_PROCESSOR(hash_row, (ptrdiff_t count, const double* row, uint64_t factor, uint64_t* keys), (count, row, factor, keys))
    """
    enum:
        FEW_ROWS
    int hash_row(Py_ssize_t count, const double* row, uint64_t factor, uint64_t* keys) noexcept nogil
    int update_and_multiply(int D, int height, double t, const double* v, double* S, const double* x, double* out,
                            double* k, double* q) noexcept nogil
    int sweep_identity(int D, int height, const double* x, double* w, double* S, const int* order, int count, double* v,
                       double* ahead) noexcept nogil
    int eigen_few_rows(int D, double* S, double* V, double* values) noexcept nogil
    int gram_few_rows(int D, int m, const double* F, double* H) noexcept nogil
    int combine_columns(int N, int m, const double* F, const double* g, double* y) noexcept nogil
    int multiply_columns(int N, int m, const double* F, const double* y, double* g) noexcept nogil
    int column_squares(int r, int count, const double* u, double* q, bint add) noexcept nogil
    int column_products(int D, int count, const double* x, const double* v, double* k, bint larger) noexcept nogil
    int weighted_products(int D, int count, const double* x, const double* v, const double* w, double* out) noexcept nogil
    int absolute_product(int D, int r, const double* N, const double* x, double* out) noexcept nogil
    int invert_few_rows(int D, int m, const double* x, const double* w, double ridge, double* S) noexcept nogil
    int screen_few_rows(int D, int m, const double* S, const double* x, double* v, double* q) noexcept nogil
    int hessian_few_rows(int D, int m, const double* x, const double* v, double* H) noexcept nogil
    int lower_products(int m, int height, int width, const double* K, const double* L, double* H, bint add) noexcept nogil
    int cholesky(int n, double* H) noexcept nogil
    int cholesky_solve(int n, const double* L, double* x) noexcept nogil
    int pair_features(int D, int m, const double* Z, const double* c, const double* root, double* F) noexcept nogil
