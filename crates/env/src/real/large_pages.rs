//! Large pages for the process's heap.
//!
//! Most systems give transparent large pages only to memory that asks for them, and only when it is first touched: what
//! was touched before stays in small pages for minutes or for ever. The allocator's regions are found in the process's
//! own map: private, anonymous, writable. They grow, and what is added has not asked. The address space that a region has
//! reserved behind it asks with it: no large page lies across two pieces that asked at different times.
//!
//! The allocator asks for all that it reserves. With little in use that costs more than it is worth:
//! the first byte of a piece takes two megabytes, and what the allocator has given back the system fills
//! again when it makes a large page of the rest. So a process that has little in use does without.

/// Smaller regions are not worth a large page.
const REGION_BYTES_MIN: usize = 8 << 20;
/// What nobody may use is what an arena may grow by if it is larger than this.
#[cfg(target_os = "linux")]
const RESERVED_BYTES_MIN: usize = 1 << 20;
/// No smaller piece can be moved. Where pages are larger, nothing is moved.
#[cfg(target_os = "linux")]
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for all regions of the heap.
pub(super) fn prefer() {
    #[cfg(target_os = "linux")]
    for Region { start, length, reserved } in heap_regions() {
        advise(start, length + reserved, libc::MADV_HUGEPAGE);
    }
}

/// Does without, in all regions of the heap. Large pages that are there stay until parts of them are given back.
pub(super) fn avoid() {
    #[cfg(target_os = "linux")]
    for Region { start, length, reserved } in heap_regions() {
        advise(start, length + reserved, libc::MADV_NOHUGEPAGE);
    }
}

/// Moves what lies in small pages, as long as it is to go on. Piece by piece: where one has no page to move to, the others still may.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
pub(super) fn make(goes_on: &dyn Fn() -> bool) {
    #[cfg(target_os = "linux")]
    for Region { start, length, .. } in heap_regions() {
        // A large page that lies across two pieces would be moved with neither.
        let end = start + length;
        for piece in (start.next_multiple_of(LARGE_PAGE_BYTES)..end).step_by(LARGE_PAGE_BYTES) {
            if !goes_on() {
                return;
            }
            // What was given back would come again.
            if end - piece >= LARGE_PAGE_BYTES && is_mostly_used(piece) {
                advise(piece, LARGE_PAGE_BYTES, libc::MADV_COLLAPSE);
            }
        }
    }
}

/// True if three quarters of a large page are in memory.
#[cfg(target_os = "linux")]
fn is_mostly_used(piece: usize) -> bool {
    const PAGES: usize = LARGE_PAGE_BYTES / 4096;
    let mut is_present = [0_u8; PAGES];
    // SAFETY: one byte is written for each page, of which there are no more than bytes: none is smaller. A piece that has gone
    // meanwhile gives an error.
    let told = unsafe {
        libc::mincore(std::ptr::with_exposed_provenance_mut(piece), LARGE_PAGE_BYTES, is_present.as_mut_ptr())
    };
    // Where pages are larger, fewer bytes are written; then nothing is moved.
    told == 0 && is_present.iter().filter(|byte| **byte & 1 == 1).count() >= PAGES / 4 * 3
}

/// A piece of the heap.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    start: usize,
    length: usize,
    /// What it may grow by.
    reserved: usize,
}

#[cfg(target_os = "linux")]
fn heap_regions() -> Vec<Region> {
    regions_of(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// The heap's regions that are, or may become, large enough. What has asked before and what has not are two lines of the map, and one
/// region here.
#[cfg(target_os = "linux")]
fn regions_of(map: &str) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let mut end_before = None;
    for (start, end, is_used) in map.lines().filter_map(heap_line) {
        let last = regions.last_mut().filter(|_| end_before == Some(start));
        match (is_used, last) {
            (true, Some(last)) if last.reserved == 0 => last.length += end - start,
            (true, _) => regions.push(Region { start, length: end - start, reserved: 0 }),
            (false, Some(last)) => last.reserved += end - start,
            (false, None) => {}
        }
        end_before = Some(end);
    }
    regions.retain(|region| region.length + region.reserved >= REGION_BYTES_MIN);
    regions
}

/// Start and end of what a line tells of, if it is of the heap, and whether it is in use. Between the stacks of threads lies what nobody may
/// use either, but a few pages only.
#[cfg(target_os = "linux")]
fn heap_line(line: &str) -> Option<(usize, usize, bool)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let is_anonymous = fields.nth(2)? == "0" && matches!(fields.next(), None | Some("[heap]"));
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok().filter(|end| *end >= start)?;
    let is_used = rights == "rw-p";
    let is_reserved = rights == "---p" && end - start >= RESERVED_BYTES_MIN;
    (is_anonymous && (is_used || is_reserved)).then_some((start, end, is_used))
}

#[cfg(target_os = "linux")]
fn advise(start: usize, length: usize, advice: libc::c_int) {
    let start = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: each advice changes how pages are backed, never what they contain; a region that has gone meanwhile, or a system
    // that does not know the advice, gives an error, which means no more than that it was not taken.
    let _ = unsafe { libc::madvise(start, length, advice) };
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_heap_is_asked_for() {
        let region = |line: &str| regions_of(line).first().map(|region| (region.start, region.length));
        assert_eq!(region("10000000-20000000 rw-p 00000000 00:00 0    [heap]"), Some((0x1000_0000, 0x1000_0000)));
        assert_eq!(region("10000000-20000000 rw-p 00000000 00:00 0 "), Some((0x1000_0000, 0x1000_0000)));
        assert_eq!(region("10000000-10001000 rw-p 00000000 00:00 0 "), None);
        assert_eq!(region("10000000-20000000 r--p 00000000 00:00 0 "), None);
        assert_eq!(region("10000000-20000000 ---p 00000000 00:00 0 "), None);
        assert_eq!(region("10000000-20000000 rw-p 00000000 08:01 77    /lib/some.so"), None);
        assert_eq!(region("10000000-20000000 rw-p 00000000 00:00 0    [stack]"), None);
        assert_eq!(region("nonsense"), None);
    }

    #[test]
    fn an_arena_is_one_region_with_what_it_reserved_and_stacks_are_none() {
        let map = "10000000-10100000 rw-p 00000000 00:00 0\n\
                   10100000-10200000 rw-p 00000000 00:00 0\n\
                   10200000-14000000 ---p 00000000 00:00 0\n\
                   20000000-20001000 ---p 00000000 00:00 0\n\
                   20001000-20401000 rw-p 00000000 00:00 0\n\
                   20401000-20402000 ---p 00000000 00:00 0\n\
                   20402000-20802000 rw-p 00000000 00:00 0\n";
        assert_eq!(regions_of(map), [Region { start: 0x1000_0000, length: 0x20_0000, reserved: 0x3e0_0000 }]);
    }

    #[test]
    fn what_was_given_back_is_not_made_large() {
        let bytes = vec![7u8; 4 * LARGE_PAGE_BYTES];
        let piece = bytes.as_ptr().expose_provenance().next_multiple_of(LARGE_PAGE_BYTES);
        assert!(is_mostly_used(piece));
        let untouched = Vec::<u8>::with_capacity(64 * LARGE_PAGE_BYTES);
        assert!(!is_mostly_used(untouched.as_ptr().expose_provenance().next_multiple_of(LARGE_PAGE_BYTES)));
        assert!(!is_mostly_used(LARGE_PAGE_BYTES), "nothing lies there");
    }

    #[test]
    fn asking_changes_no_content() {
        let bytes = vec![7u8; 4 * REGION_BYTES_MIN];
        avoid();
        prefer();
        make(&|| true);
        avoid();
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}
