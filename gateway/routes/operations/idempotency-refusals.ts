/** Refusals of a reused idempotency key, for every route that supports one. */
import { problem } from '../../route.js'

export const idempotencyRefusals = {
  idempotency_mismatch: problem(422, 'unprocessable-content', {
    detail: 'This idempotency key was used with another body.',
  }),
  idempotency_in_progress: problem(409, 'conflict', {
    detail: 'The first request with this idempotency key is still running.',
    retryAfterSecs: 1,
  }),
}
