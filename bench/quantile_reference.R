# Sparse quantile regression by R's quantreg, conquer and hqreg, for bench/run.
#
#     Rscript quantile_reference.R FOLDER quantreg|pfn|conquer|hqreg [REPEAT]
#
# FOLDER is what `bench/quantile --write` leaves. Writes FOLDER/NAME.solution: the processor's seconds of solving, the best
# of REPEAT, less loading, then the coefficients, one per line. BLAS is to be pinned to one thread by whoever calls.

given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]
name <- given[2]
times <- if (length(given) > 2) as.integer(given[3]) else 1L

numbers <- function(file, count) readBin(file.path(folder, file), "double", count)
shape <- numbers("shape", 4)
n <- shape[1]
features <- shape[2]
tau <- shape[3]
lambda <- shape[4]
x <- matrix(numbers("x", n * features), n, features, byrow = TRUE)
y <- numbers("y", n)

# quantreg lays the penalty out as rows of the median's loss, half of |.|. conquer's loss is the mean over the rows,
# smoothed; it standardises the columns and adds an intercept, which is left out of the solution here.
# pfn, quantreg's method for many rows, knows no penalty: two rows of +-lambda for each feature are the same problem.
# hqreg's loss is the mean over the rows, too; it fails on a path of one, so lambda is given twice: the second time costs
# nothing. No distribution of Debian has it: it is run if R finds it.
more <- if (name == "pfn") rbind(x, diag(lambda, features), diag(-lambda, features))
solve <- switch(name,
    pfn = function() quantreg::rq.fit.pfn(more, c(y, rep(0, 2 * features)), tau = tau)$coefficients,
    quantreg = function() quantreg::rq.fit.lasso(x, y, tau = tau, lambda = rep(2 * lambda, features))$coefficients,
    conquer = function() conquer::conquer.reg(x, y, lambda = lambda / n, tau = tau)$coeff[-1],
    hqreg = function() hqreg::hqreg_raw(x, y, "quantile", tau = tau, lambda = rep(lambda / n, 2), intercept = FALSE)$beta[, 2])

invisible(loadNamespace(if (name == "pfn") "quantreg" else name))
seconds <- Inf
for (i in seq_len(times)) {
    start <- proc.time()
    w <- solve()
    seconds <- min(seconds, sum((proc.time() - start)[c("user.self", "sys.self")]))
}
writeLines(sprintf("%.17g", c(seconds, as.numeric(w))), file.path(folder, paste0(name, ".solution")))
