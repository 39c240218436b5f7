/** Secrets that are JSON documents, by `auth_scheme`. */
import { z } from 'zod'
import type { SignedScheme, TokenScheme } from '../egress.js'
import { AwsSigV4Secret } from './aws-sigv4.js'
import { GitHubAppSecret } from './github-app.js'
import { HmacSecret } from './hmac.js'
import { ClientCredentialsSecret, RefreshSecret } from './oauth.js'
import { ServiceAccountSecret } from './service-account.js'

type DocumentScheme = SignedScheme | TokenScheme

/** A new scheme is a row. */
export const SECRET_DOCUMENTS = {
  aws_sigv4: AwsSigV4Secret,
  hmac: HmacSecret,
  /** The key is the agent's, and made by the service. */
  http_signature: z.strictObject({}),
  oauth2_client_credentials: ClientCredentialsSecret,
  oauth2_refresh: RefreshSecret,
  github_app: GitHubAppSecret,
  gcp_service_account: ServiceAccountSecret,
} as const satisfies Readonly<Record<DocumentScheme, z.ZodType>>

/** The secret of a scheme, as it was validated when it was stored. */
export type SecretDocument<S extends DocumentScheme> = z.output<(typeof SECRET_DOCUMENTS)[S]>

export const hasSecretDocument = (scheme: string): scheme is DocumentScheme =>
  Object.hasOwn(SECRET_DOCUMENTS, scheme)

export type DocumentFault = { readonly pointer: string; readonly detail: string }

/** The first fault of a document. The detail never quotes it. */
export function documentFault(
  scheme: DocumentScheme,
  document: unknown,
): DocumentFault | undefined {
  const { error } = SECRET_DOCUMENTS[scheme].safeParse(document)
  const issue = error?.issues[0]
  if (issue === undefined) return undefined
  const pointer = ['', 'secret', ...issue.path.map(String)].join('/')
  // The names of unknown members may be parts of a secret too.
  const isUnknown = issue.code === 'unrecognized_keys'
  return { pointer, detail: isUnknown ? 'Contains an unknown member.' : issue.message }
}
