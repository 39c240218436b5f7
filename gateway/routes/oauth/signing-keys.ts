/** Rotation of the signing keys of the deployment. */
import { z } from 'zod'
import { signingKeys, SIGNING_ALGORITHMS } from '../../../actors/oauth/signing-keys/protocol.js'
import { callerOf } from '../../request/caller.js'
import { json, problem, type Route, reply, route } from '../../route.js'

const Rotation = z
  .object({
    algorithm: z
      .enum(SIGNING_ALGORITHMS)
      .optional()
      .meta({ description: 'Rotates only the key of this algorithm. Default: all.' }),
  })
  .meta({ id: 'SigningKeyRotation' })

const Rotated = z
  .object({
    current: z.array(z.object({ kid: z.string(), algorithm: z.enum(SIGNING_ALGORITHMS) })).meta({
      description: 'The keys that sign from now on. They were published ten minutes ago.',
    }),
  })
  .meta({ id: 'SigningKeysRotated' })

export const signingKeyRoutes: readonly Route[] = [
  route(signingKeys, 'rotateSigningKeys', {
    method: 'POST',
    path: '/api/v1/signing-keys/rotate',
    summary: 'Rotate the signing keys',
    description:
      'Existing tokens stay valid: the JWK Set contains the retired key until the last of them has ' +
      'expired. `svc operator appoint` gives signing_keys:manage to an agent of the control plane. No ' +
      'role has it. Use `svc keys rotate --compromised` to withdraw a compromised key.',
    tags: ['Discovery and keys'],
    exposure: 'internal',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'operator',
      scopes: ['signing_keys:manage'],
      subjects: ['agent'],
      console: 'accepted',
      direct: 'required',
    },
    body: json(Rotation, { optional: true }),
    message: (request) => ({
      caller: callerOf(request),
      algorithm: request.body.algorithm,
      compromised: false,
    }),
    replies: {
      rotated: reply(200, Rotated, ({ current }) => ({ current: [...current] })),
      rotated_too_recently: problem(409, 'conflict', ({ retryAfterSecs }) => ({
        detail:
          'The next key was published less than ten minutes ago, so verifiers may not have it yet. ' +
          'Retry after the time in Retry-After.',
        retryAfterSecs,
      })),
      keys_unavailable: problem(503, 'service-unavailable', {
        detail: 'The database or the kms is unavailable.',
        retryAfterSecs: 5,
      }),
    },
  }),
]
