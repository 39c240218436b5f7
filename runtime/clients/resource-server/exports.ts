/** The resource-server kit: `import { createResourceServer } from 'svc/resource-server'`. */
export { type AccessToken, type Actor, InvalidToken } from './access-token.js'
export type { ChallengeError, ChallengeOptions, Refusal } from './challenge.js'
export { Unavailable } from './documents.js'
export { memoryReplayStore, type ReplayStore } from './dpop.js'
export type { DpopOptions, ResourceServerOptions } from './options.js'
export {
  type AnyRequest,
  type Authenticated,
  createResourceServer,
  type ProtectedResourceMetadata,
  type ResourceServer,
} from './resource-server.js'
export { InsufficientScope, verifyToken, type VerifyTokenOptions } from './verify-token.js'
