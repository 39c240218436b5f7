/** The environment that makes a child's programs use the proxy and trust its certificates. */
import type { Environment } from '../../kernel/config/environment.js'

/** Programs read either case. */
const PROXY_NAMES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'] as const
const UNPROXIED = 'localhost,127.0.0.1,::1'
/** Variables for the file of trusted certificates. */
const BUNDLE_NAMES = [
  'SSL_CERT_FILE', // OpenSSL, Python, Ruby, PHP, Go
  'PERL_LWP_SSL_CA_FILE',
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
/** Variables that bypass the proxy or the certificates. */
const REMOVED = [
  'ALL_PROXY',
  'all_proxy',
  'SSL_CERT_DIR',
  'GIT_SSL_CAPATH',
  'GIT_SSL_NO_VERIFY',
] as const

type ChildEnvironmentOptions = {
  readonly proxyUrl: string
  readonly bundlePath: string
  /** System file of wget, which names the certificates. */
  readonly wgetrcPath: string
  /** Folder with a settings file of PHP, which names the certificates. */
  readonly phpFolder: string
  /** Module that makes Node's HTTP clients use the proxy. */
  readonly preloadPath: string
  /** Name of the variable with the access token, if any; it is removed. */
  readonly tokenEnv: string | undefined
}

export function childEnvironment(
  parent: Environment,
  options: ChildEnvironmentOptions,
): Environment {
  const { proxyUrl, bundlePath, wgetrcPath, phpFolder, preloadPath, tokenEnv } = options
  const own: Record<string, string | undefined> = { ...parent }
  for (const name of REMOVED) delete own[name]
  if (tokenEnv !== undefined) delete own[tokenEnv]
  for (const name of PROXY_NAMES) own[name] = proxyUrl
  for (const name of BUNDLE_NAMES) own[name] = bundlePath
  own['NO_PROXY'] = UNPROXIED
  own['no_proxy'] = UNPROXIED
  // Built into Node 22.21 and 24; the preload module serves older versions.
  own['NODE_USE_ENV_PROXY'] = '1'
  const required = `--require=${JSON.stringify(preloadPath)}`
  own['NODE_OPTIONS'] = [parent['NODE_OPTIONS'], required].filter(Boolean).join(' ')
  own['SYSTEM_WGETRC'] = wgetrcPath
  // An empty part stands for the folder that PHP was built with.
  own['PHP_INI_SCAN_DIR'] = `${parent['PHP_INI_SCAN_DIR'] ?? ''}:${phpFolder}`
  return own
}
