/**
 * Test files that share a process, one after another: a process of AVA and the modules of a service cost more time than most
 * files. The runner writes a file for each room, which runs its members (test/support/room.ts).
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOMS } from './room-titles.js'

/** Fewer would leave a processor without work at the end of a run. */
const MEMBERS_MAX = 16
/** Members change nothing that the next file sees: the environment, the folder, the clock and the globals of their process. */
const CHANGES_PROCESS =
  /\bprocess\.(?:env(?:\[[^\]]+\]|\.\w+) = |chdir|memoryUsage|cpuUsage|on\()|\bdelete process\.env|\bglobalThis\.\w+ = |setGlobalDispatcher|mock\.timers/

/** Many take minutes: in a room they would be the end of the run, one after another. Alone, and of unknown length, they are first. */
const LONG = /\.long\.test\.js$/

export type Room = { readonly name: string; readonly members: readonly string[] }

/** A profile of shared services that a file names (test/support/fleet/profiles.ts). */
const PROFILE = /\b(?:shared(?:Service|Api|Pair|Two))\(['"](\w+)|\bprofile: ['"](\w+)/g

/** The rooms of some test files, and the files that have a process each. @param textOf the text of a compiled file. */
export function roomsOf(
  files: readonly string[],
  textOf: (file: string) => string,
): { readonly rooms: readonly Room[]; readonly others: readonly string[] } {
  const others = files.filter((file) => LONG.test(file) || CHANGES_PROCESS.test(textOf(file)))
  const members = byProfile(
    files.filter((file) => !others.includes(file)),
    textOf,
  )
  const layers = [...new Set(members.map(layerOf))]
  const rooms = layers.flatMap((layer) => {
    const all = members.filter((file) => layerOf(file) === layer)
    const count = Math.ceil(all.length / MEMBERS_MAX)
    return Array.from({ length: count }, (_, nth): Room => {
      const [from, to] = [nth, nth + 1].map((part) => Math.round((all.length * part) / count))
      return { name: `${layer}-${nth + 1}`, members: all.slice(from, to) }
    })
  })
  return { rooms, others }
}

/**
 * Files of a profile that few name follow each other: its service starts once, and waits for no file. The others keep their
 * order.
 */
function byProfile(files: readonly string[], textOf: (file: string) => string): readonly string[] {
  const named = files.map((file) =>
    [...textOf(file).matchAll(PROFILE)].map(([, shared, shop]) => (shared ?? shop)!),
  )
  const users = new Map<string, number>()
  for (const profile of named.flatMap((names) => [...new Set(names)])) {
    users.set(profile, (users.get(profile) ?? 0) + 1)
  }
  const usersOf = (profile: string) => users.get(profile)!
  const rarest = named.map(
    (names) => names.toSorted((one, other) => usersOf(one) - usersOf(other))[0],
  )
  const place = (at: number) => {
    const profile = rarest[at]
    const isRare = profile !== undefined && usersOf(profile) <= MEMBERS_MAX
    return isRare ? rarest.indexOf(profile) : at
  }
  return files
    .map((file, at) => ({ file, at, place: place(at) }))
    .toSorted((one, other) => one.place - other.place || one.at - other.at)
    .map(({ file }) => file)
}

/** The folder below test/. */
function layerOf(file: string): string {
  const [, , layer = '', ...below] = file.split('/')
  return below.length === 0 ? 'tree' : layer
}

/**
 * Writes the files of the rooms, and the seconds of each for AVA.
 * @returns the files from the root, TEST_ROOMS for AVA, and what removes them.
 */
export function openRooms(
  rooms: readonly Room[],
  root: string,
  secondsOf: (file: string) => number,
) {
  // Another run of this tree has other rooms.
  const folder = join(ROOMS, String(process.pid))
  const seconds: Record<string, number> = {}
  mkdirSync(join(root, folder), { recursive: true })
  for (const { name, members } of rooms) {
    const file = join(folder, `${name}.test.js`)
    writeFileSync(join(root, file), roomText(members))
    seconds[file] = members.reduce((sum, member) => sum + secondsOf(member), 0)
  }
  const path = join(root, folder, 'seconds.json')
  writeFileSync(path, JSON.stringify(seconds))
  return {
    files: Object.keys(seconds),
    environment: { TEST_ROOMS: path },
    close: () => rmSync(join(root, folder), { recursive: true, force: true }),
  }
}

const SUPPORT = new URL('../support/room.js', import.meta.url).href

export function roomText(members: readonly string[]): string {
  return `import 'ava'\nimport { runRoom } from '${SUPPORT}'\n\nrunRoom(${JSON.stringify(members)})\n`
}
