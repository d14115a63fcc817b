import numpy as np
import truenorm

x = np.array([[3, 1, 5, 7], [1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3]], dtype=np.float32)
gamma, beta = np.full(4, 2, np.float32), np.ones(4, np.float32)

y, cache = truenorm.layer_norm_forward(x, gamma, beta)
dx, dgamma, dbeta = truenorm.layer_norm_backward(np.ones_like(y), cache)
print(np.round(y, 3))
print("mean", cache.mu.ravel(), "variance", cache.var.ravel(), "dbeta", dbeta)
