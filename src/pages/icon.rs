//! The site's icon: a gate between two posts, and a bar that has passed below it. Drawn here as text, so that it can
//! be reviewed, and encoded as an ICO file.

const SIDE: u8 = 16;

/// `#` is the gate, `o` the bar, `.` the tile behind them; a blank is transparent.
const PICTURE: [&[u8; 16]; 16] = [
    b"  ............  ",
    b" .............. ",
    b"................",
    b"...##......##...",
    b"...##......##...",
    b"...##......##...",
    b"...##########...",
    b"...##########...",
    b"...##......##...",
    b"...##.oooo.##...",
    b"...##.oooo.##...",
    b"...##......##...",
    b"...##......##...",
    b"................",
    b" .............. ",
    b"  ............  ",
];

/// The header of the file and the entry of its one picture.
const LEAD: u32 = 6 + 16;

/// The icon as a file: one picture of 16 by 16 pixels of 32 bits.
pub(super) fn file() -> Vec<u8> {
    let picture = bitmap();
    let length = u32::try_from(picture.len()).expect("a picture of 256 pixels is short");
    // Reserved, an icon, one picture; its size, no palette, one plane of 32 bits; how long it is and where it begins.
    let mut file = shorts(&[0, 1, 1]);
    file.extend([SIDE, SIDE, 0, 0]);
    file.extend(shorts(&[1, 32]));
    file.extend(longs(&[length, LEAD]));
    file.extend(picture);
    file
}

/// A bitmap as icons have it: rows from the bottom up, blue first, then a mask of one bit a pixel, which the fourth byte
/// of a pixel makes redundant. The height in its header counts both.
fn bitmap() -> Vec<u8> {
    let side = u32::from(SIDE);
    let mut bitmap = longs(&[40, side, side * 2]);
    bitmap.extend(shorts(&[1, 32]));
    bitmap.extend(longs(&[0; 6]));
    let pixels = PICTURE.iter().rev().flat_map(|row| row.iter().copied());
    bitmap.extend(pixels.flat_map(colour));
    // A row of the mask fills up to 32 bits.
    bitmap.extend([0; 4 * SIDE as usize]);
    bitmap
}

/// Blue, green, red and opacity.
const fn colour(pixel: u8) -> [u8; 4] {
    match pixel {
        b'#' => [255, 255, 255, 255],
        b'o' => [0xa0, 0xd1, 0x7f, 255],
        b'.' => [0xad, 0x5c, 0x0b, 255],
        _ => [0; 4],
    }
}

fn shorts(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn longs(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_length_that_its_headers_state() {
        assert_eq!(file().len(), LEAD as usize + 40 + 16 * 16 * 4 + 16 * 4);
        // The first pixel of the last row is transparent, the one in its middle is of the tile.
        let pixel = |at: usize| file()[62 + at * 4..66 + at * 4].to_vec();
        assert_eq!((pixel(0), pixel(8)), (vec![0; 4], vec![0xad, 0x5c, 0x0b, 255]));
    }
}
