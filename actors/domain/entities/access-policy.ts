/** A condition of sign-ins and tokens of a tenant (docs/reference/oauth.md, Access policies). */
import { z } from 'zod'
import { type Draft, entity, type Row } from './entity.js'
import { DisplayName } from './names.js'

const LIST_MAX = 100
const LIST_CHARACTERS_MAX = 8_192

export const PolicyAction = z.enum(['sign_in', 'token'])
export const Aal = z.enum(['aal1', 'aal2', 'aal3'])

/** A list of which requests read every row of a tenant. */
export const texts = (most: number) =>
  z
    .array(z.string().min(1).max(most))
    .max(LIST_MAX)
    .refine((list) => list.join('').length <= LIST_CHARACTERS_MAX, {
      error: `Must have at most ${LIST_CHARACTERS_MAX} characters in all.`,
    })
const once = <T>(list: T[]) => [...new Set(list)]

export const accessPolicy = entity({
  name: 'access_policy',
  table: 'access_policies',
  schema: 'AccessPolicy',
  answers: 'as requested',
  unstored: ['force'],
  members: {
    name: DisplayName,
    enabled: z.boolean().default(true),
    actions: z
      .array(PolicyAction)
      .min(1)
      .max(2)
      .overwrite(once)
      .meta({
        description:
          'sign_in: a request at /oauth/authorize, with the address of the browser. token: the issue of an access token, ' +
          'with the address of the client',
      })
      .default(['sign_in', 'token']),
    client_ids: texts(2_048)
      .overwrite(once)
      .meta({ description: 'Applications and agents. Empty: all' })
      .default([]),
    scopes: texts(255)
      .overwrite(once)
      .meta({ description: 'Requests with one of these scopes. Empty: all' })
      .default([]),
    allowed_networks: texts(64)
      .meta({ description: 'Networks such as 192.0.2.0/24. Empty: all' })
      .default([]),
    denied_networks: texts(64).meta({ description: 'Networks that are refused' }).default([]),
    required_aal: Aal.nullable()
      .meta({
        description: 'The least assurance level of users: the sign-in raises it. null: none',
      })
      .default(null),
    force: z
      .boolean()
      .optional()
      .meta({ description: 'true accepts a policy that refuses the caller' }),
  },
})

export type AccessPolicyMembers = (typeof accessPolicy)['members']
export type AccessPolicy = Row<AccessPolicyMembers>
export type AccessPolicyDraft = Draft<AccessPolicyMembers>

/** `aal2` as 2. */
export const levelOf = (aal: z.output<typeof Aal> | null) =>
  aal === null ? null : (Number(aal.slice(-1)) as 1 | 2 | 3)
