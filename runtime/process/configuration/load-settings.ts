/**
 * Loads the configuration of a process: the file, the environment, the plane and the data directory
 * (docs/reference/runtime.md).
 */
import { readFileSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import type { Plane } from './deployment.js'
import type { Environment } from '../../kernel/config/environment.js'
import type { EnvironmentNames } from '../../kernel/config/layers.js'
import { brokenRules, load } from '../../kernel/config/load.js'
import type { Failure, Partially, Source, Sources } from '../../kernel/config/outcome.js'
import { treeOf } from '../../kernel/config/tree.js'
import { productionRules } from '../production.js'
import { assembly } from './assembly.js'
import type { Settings } from './settings.js'

/** EX_CONFIG of sysexits(3): the exit code for a refused configuration. */
export const EXIT_CONFIGURATION = 78

const DEFAULT_FILE = 'svc.toml'
const PLANES: readonly Plane[] = ['all', 'auth', 'control', 'async']

export const environmentNames: EnvironmentNames = {
  prefix: 'SVC_',
  reserved: ['SVC_CONFIG_FILE', 'SVC_DATA_DIR', 'SVC_RUNTIME_PLANE'],
  shortcuts: {
    DATABASE_URL: 'database.url',
    DATABASE_IDENTITY_URL: 'database.identity_url',
    DATABASE_LISTENER_URL: 'database.listener_url',
    DATABASE_AUTH_URL: 'database.auth_url',
    DATABASE_CONTROL_URL: 'database.control_url',
    DATABASE_ASYNC_URL: 'database.async_url',
    MIGRATION_DATABASE_URL: 'database.migration_url',
    MAINTENANCE_DATABASE_URL: 'database.maintenance_url',
  },
  // Secrets that moved to the kms.
  moved: {
    'jwt.private_key': 'remove it; signing keys are made by the service and sealed through [kms]',
    'jwt.signing_key': 'remove it; signing keys are made by the service and sealed through [kms]',
    'vault.master_key': 'remove it; the master key is held by the kms process, configure [kms]',
    'vault.encryption_key': 'remove it; data keys are wrapped by the kms process, configure [kms]',
    'webhooks.encryption_key': 'remove it; webhook secrets are sealed through [kms]',
    'session_cookie.secret': 'remove it; session secrets are made and sealed through [kms]',
  },
}

export interface LoadSettingsInput {
  /** From `readEnvironment()`, or a plain record in tests. */
  readonly environment: Environment
  /** An absolute path: the folder of `svc.toml`, to which relative paths refer. */
  readonly cwd: string
  /** Reads a file as UTF-8 text; throws like `fs.readFileSync`. */
  readonly readFile?: ((path: string) => string) | undefined
  /**
   * The user id of this process. For root (0) the data directory is outside of its home folder,
   * which other users cannot enter.
   */
  readonly uid?: number | undefined
  /**
   * False for commands that serve no requests (migrate, keys, operator ...): they need no
   * SVC_RUNTIME_PLANE, even when `deployment.allow_all_in_one_runtime_plane` is false.
   */
  readonly servesPlane?: boolean | undefined
}

export interface LoadedSettings {
  readonly tag: 'loaded'
  readonly settings: Settings
  readonly sources: Sources
  readonly plane: Plane
  /** An absolute path that may not exist yet. */
  readonly dataDir: string
  /** The name of the loaded file in messages. */
  readonly file: string | undefined
}

interface RefusedSettings {
  readonly tag: 'refused'
  readonly failures: readonly Failure[]
}

/** Never throws: every fault of the configuration is a listed failure. */
export function loadSettings(input: LoadSettingsInput): LoadedSettings | RefusedSettings {
  const { environment } = input
  const failures: Failure[] = []
  const file = configurationFile(input, failures)
  const loaded = load(assembly, { environment, names: environmentNames, file })
  if (loaded.tag === 'refused') failures.push(...loaded.failures)
  const readable = loaded.tag === 'loaded' ? loaded.settings : loaded.partial
  const { servesPlane = true } = input
  const mayBeAll = !servesPlane || readable.deployment?.allow_all_in_one_runtime_plane !== false
  const plane = runtimePlane(environment, mayBeAll, failures)
  const dataDir = dataDirectory(input, failures)
  if (plane === 'auth') failures.push(...misplacedAssetSecrets(readable))
  else if (servesPlane) failures.push(...missingAssetSecrets(readable))
  if (loaded.tag === 'refused' || failures.length > 0 || plane === undefined) {
    return { tag: 'refused', failures }
  }
  const { sources } = loaded
  const settings = plane === 'all' ? loaded.settings : ofSplitPlane(loaded.settings, sources)
  return { tag: 'loaded', settings, sources, plane, dataDir, file: file?.path }
}

/** The processes of the auth plane may be elsewhere, so the address of one is not told unless it is set. */
function ofSplitPlane(settings: Settings, sources: Sources): Settings {
  if (sources.get('server.egress_url')?.kind !== 'fallback') return settings
  const { server, oidc } = settings
  return { ...settings, server: { ...server, egress_url: oidc.issuer_url } }
}

/** The production requirements that settings do not meet; empty outside production. */
export function productionFailures(settings: Settings, sources: Sources): readonly Failure[] {
  return brokenRules(productionRules, settings, sources, new Set(), treeOf(assembly))
}

/** The TOML file: SVC_CONFIG_FILE, which must exist, or `svc.toml`, which may. */
function configurationFile(
  { environment, cwd, readFile = readUtf8 }: LoadSettingsInput,
  failures: Failure[],
): { path: string; text: string } | undefined {
  const named = environment['SVC_CONFIG_FILE']
  const path = named ?? DEFAULT_FILE
  try {
    // Some editors begin a file with a byte order mark, which TOML does not allow.
    return { path, text: readFile(resolve(cwd, path)).replace(/^\uFEFF/, '') }
  } catch (error) {
    const code = codeOf(error)
    if (named === undefined && code === 'ENOENT') return undefined
    failures.push({
      key: path === '' ? 'SVC_CONFIG_FILE' : path,
      source: named === undefined ? DEFAULT : variable('SVC_CONFIG_FILE'),
      rule: `cannot be read (${code})`,
      fix: 'make the file readable, or change SVC_CONFIG_FILE',
    })
    return undefined
  }
}

/** The plane of this process. Undefined after a failure was added. */
function runtimePlane(
  environment: Environment,
  mayBeAll: boolean,
  failures: Failure[],
): Plane | undefined {
  const key = 'SVC_RUNTIME_PLANE'
  const text = environment[key]
  const split = 'auth, control or async'
  if (text === undefined) {
    if (mayBeAll) return 'all'
    failures.push({
      key,
      source: DEFAULT,
      rule: 'must be set when deployment.allow_all_in_one_runtime_plane is false',
      fix: `set ${key} to ${split}`,
    })
    return undefined
  }
  const plane = PLANES.find((name) => name === text)
  const failure = { key, value: JSON.stringify(text.slice(0, 80)), source: variable(key) }
  if (plane === undefined) {
    const fix = `set ${key} to all, ${split}`
    failures.push({ ...failure, rule: `must be one of ${PLANES.join(', ')}`, fix })
  } else if (plane === 'all' && !mayBeAll) {
    const rule = 'must not be all when deployment.allow_all_in_one_runtime_plane is false'
    failures.push({ ...failure, rule, fix: `set ${key} to ${split}` })
    return undefined
  }
  return plane
}

/** The folder of the embedded database, the local kms and its keys. */
function dataDirectory({ environment, cwd, uid }: LoadSettingsInput, failures: Failure[]): string {
  const key = 'SVC_DATA_DIR'
  const named = environment[key]
  if (named === undefined) return defaultDataDirectory(environment, cwd, uid)
  if (named === '' || named.includes('\0')) {
    const rule = 'must be the path of a directory'
    failures.push({ key, source: variable(key), rule, fix: `set ${key} to a path, or unset it` })
  }
  return resolve(cwd, named)
}

/** The user's state folder (XDG base directories). For root the machine's. */
function defaultDataDirectory(environment: Environment, cwd: string, uid: number | undefined) {
  if (uid === 0) return '/var/lib/svc'
  const state = environment['XDG_STATE_HOME']
  if (state !== undefined && isAbsolute(state)) return join(state, 'svc')
  return join(resolve(cwd, environment['HOME'] ?? '.'), '.local', 'state', 'svc')
}

/** Credentials of the object store are not allowed on the auth plane. */
function misplacedAssetSecrets({ tenant_assets }: Partially<Settings>): Failure[] {
  return (['access_key_id', 'secret_access_key'] as const)
    .filter((name) => tenant_assets?.[name] !== undefined)
    .map((name) => ({
      key: `tenant_assets.${name}`,
      source: variable('SVC_RUNTIME_PLANE'),
      rule: 'must not be given to the auth plane',
      fix: 'give it to control and async processes only',
    }))
}

/** Other planes need them where assets are in an object store. */
function missingAssetSecrets({ tenant_assets }: Partially<Settings>): Failure[] {
  const { enabled = false, folder, s3_endpoint: endpoint } = tenant_assets ?? {}
  if (!enabled || folder !== undefined || endpoint === undefined) return []
  return (['access_key_id', 'secret_access_key'] as const)
    .filter((name) => tenant_assets?.[name] === undefined)
    .map((name) => ({
      key: `tenant_assets.${name}`,
      source: DEFAULT,
      rule: 'be set when tenant_assets.enabled is true and tenant_assets.folder is not set',
      fix: `set SVC_TENANT_ASSETS__${name.toUpperCase()}`,
    }))
}

const DEFAULT: Source = { kind: 'default' }

function variable(name: string): Source {
  return { kind: 'environment', name }
}

function readUtf8(path: string): string {
  return readFileSync(path, 'utf8')
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'unknown error'
}
