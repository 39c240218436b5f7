/** What a child is told, so that its programs call through the proxy and trust its certificates. */
import type { Environment } from '../kernel/config/environment.js'

/** Programs read the proxy from either spelling. */
const PROXY_NAMES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'] as const
const UNPROXIED = 'localhost,127.0.0.1,::1'
/** A file of all certificates that are trusted. */
const BUNDLE_NAMES = [
  'SSL_CERT_FILE', // OpenSSL, Python, Ruby, PHP, Go
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'GIT_SSL_CAINFO',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  'DENO_CERT',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
  'NODE_EXTRA_CA_CERTS',
] as const
/** Would lead around the proxy, or to other certificates. */
const REMOVED = [
  'ALL_PROXY',
  'all_proxy',
  'SSL_CERT_DIR',
  'GIT_SSL_CAPATH',
  'GIT_SSL_NO_VERIFY',
] as const

export type ChildMeans = {
  readonly proxyUrl: string
  readonly bundlePath: string
  /** Module that teaches Node's own clients to use the proxy. */
  readonly preloadUrl: string
  /** The variable that held the token, if one did. */
  readonly tokenEnv: string | undefined
}

export function childEnvironment(parent: Environment, means: ChildMeans): Environment {
  const { proxyUrl, bundlePath, preloadUrl, tokenEnv } = means
  const own: Record<string, string | undefined> = { ...parent }
  for (const name of REMOVED) delete own[name]
  if (tokenEnv !== undefined) delete own[tokenEnv]
  for (const name of PROXY_NAMES) own[name] = proxyUrl
  for (const name of BUNDLE_NAMES) own[name] = bundlePath
  own['NO_PROXY'] = UNPROXIED
  own['no_proxy'] = UNPROXIED
  // From Node 22.21 and 24 on by itself, before that by the module.
  own['NODE_USE_ENV_PROXY'] = '1'
  own['NODE_OPTIONS'] = [parent['NODE_OPTIONS'], `--import=${preloadUrl}`].filter(Boolean).join(' ')
  return own
}
