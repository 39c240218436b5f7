/** The keys that sign for the whole deployment, looked after. decisions.md 8 and 17. */
import { z } from 'zod'
import { keys, SIGNING_ALGORITHMS } from '../../../actors/oauth/signing-keys/protocol.js'
import { callerOf } from '../../request/caller.js'
import { json, problem, type Route, reply, route } from '../../route.js'

const Rotation = z
  .object({
    algorithm: z
      .enum(SIGNING_ALGORITHMS)
      .optional()
      .meta({ description: 'Replaces the key of this algorithm alone; left out, of each.' }),
  })
  .meta({ id: 'SigningKeyRotation' })

const Rotated = z
  .object({
    current: z
      .array(z.object({ kid: z.string(), algorithm: z.enum(SIGNING_ALGORITHMS) }))
      .meta({ description: 'What signs from now on; the key set has had it for ten minutes' }),
  })
  .meta({ id: 'SigningKeysRotated' })

export const signingKeyRoutes: readonly Route[] = [
  route(keys, 'rotate', {
    method: 'POST',
    path: '/api/v1/signing-keys/rotate',
    operationId: 'rotateSigningKeys',
    summary: 'Replace the keys that sign tokens with the next ones',
    description:
      'Tokens already signed stay valid: the key set shows the replaced key until the last of them ' +
      'has ended. signing_keys:manage is given by `svc operator appoint` to an agent of the control ' +
      'plane; no role brings it. A key that others know is withdrawn by `svc keys rotate ' +
      '--compromised` instead.',
    tags: ['Discovery and keys'],
    exposure: 'internal',
    security: {
      scheme: 'bearer',
      scopes: ['signing_keys:manage'],
      subjects: ['agent'],
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
          'The next key has not been published for ten minutes yet: who verifies tokens may not ' +
          'know it. Retry-After says when it has.',
        retryAfterSecs,
      })),
      keys_unavailable: problem(503, 'service-unavailable', {
        detail: 'The database or the key management does not answer.',
        retryAfterSecs: 5,
      }),
    },
  }),
]
