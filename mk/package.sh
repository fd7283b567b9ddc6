#!/bin/sh
# Creates a Debian package and a tar file of the installation in PACKED/deb (mk/package.mk).
#
#   sh mk/package.sh PACKED VERSION
set -eu

packed=$(realpath "$1")
version=$2
name=heed-$version-x86-64
deb=$packed/deb
tar=$packed/tar/$name
# Time of the last commit, which dpkg-deb also gives all files, so that two builds of a commit have the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

strip --strip-debug "$deb/usr/lib/libheed.a"
gzip -9n "$deb"/usr/share/man/man1/*.1

# Licences of heed and of header-only libraries.
licences=$deb/usr/share/doc/heed
mkdir -p "$licences"
{
  printf 'This is heed %s.\n\n' "$version"
  cat LICENSE
  for package in libhwy-dev libstb-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev; do
    printf '\n\nheed contains code of the headers in %s, whose licence follows.\n\n' "$package"
    cat "/usr/share/doc/$package/copyright"
  done
} >"$licences/copyright"

# ---- The tar file: the same files, heed's libraries except the C library, and headers for plugins ----
rm -rf "$packed/tar"
mkdir -p "$packed/tar"
cp -a "$deb/usr" "$tar"
cp -a /usr/include/fmt /usr/include/hwy "$tar/include"
blas=$(ldconfig -p | sed -n 's/.*libopenblas\.so\.0 (.*x86-64.*) => //p' | head -n 1)
mkdir "$tar/share/doc/heed/libraries"
for library in "$blas" $(ldd "$deb/usr/lib/heed/libheed.so" "$blas" | sed -n 's/.* => \(\/.*\) (.*/\1/p' | sort -u); do
  soname=$(basename "$library")
  case $soname in libc.so.* | libm.so.*) continue ;; esac
  [ -e "$tar/lib/heed/$soname" ] && continue
  file=$(realpath "$library")
  install -m 644 "$file" "$tar/lib/heed/$soname"
  package=$(dpkg-query -S "*/$(basename "$file")" | sed 's/:.*//; q')
  cp "/usr/share/doc/$package/copyright" "$tar/share/doc/heed/libraries/$soname.txt"
done
cp /usr/share/common-licenses/GPL-3 "$tar/share/doc/heed/libraries"
sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$tar/lib/pkgconfig/heed.pc"
tar -C "$packed/tar" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$name" | xz -T0 -1 >"$packed/$name.tar.xz"

# ---- The Debian package ----
mkdir -p "$packed/debian" "$deb/DEBIAN"
maintainer='The heed authors <heed@packages.invalid>'
printf 'heed (%s) bookworm; urgency=medium\n\n  * See /usr/share/heed/docs.\n\n -- %s  %s\n' \
  "$version" "$maintainer" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$licences/changelog.gz"
printf 'Source: heed\n\nPackage: heed\nArchitecture: amd64\n' >"$packed/debian/control"
depends=$(cd "$packed" && dpkg-shlibdeps -O -ldeb/usr/lib/heed \
  deb/usr/bin/heed deb/usr/lib/heed/glibc-hwcaps/*/libheed.so | sed 's/^shlibs:Depends=//')
cat >"$deb/DEBIAN/control" <<END
Package: heed
Version: $version
Architecture: amd64
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$deb" | cut -f 1)
Depends: $depends, libopenblas0-pthread | libopenblas0, libfmt-dev, dataset-fashion-mnist
Recommends: g++, libhwy-dev, python3, python3-matplotlib, jupyter-notebook, jupyter-nbconvert, python3-ipykernel, openmpi-bin, curl, ca-certificates
Suggests: libopenblas-dev, libtbb-dev, zlib1g-dev, pkgconf, bible-kjv
Section: science
Priority: optional
Description: attention mechanisms on an ordinary computer
 heed trains small Vision Transformers and other models on the CPU. It is for
 students, teachers and researchers who want to read attention, not only run
 it: 17 mechanisms, each with its equations, cost and tested gradients.
 .
 This package runs on every x86-64 CPU with AVX2, faster with AVX-512. It holds
 the program, its models and experiments, course notebooks and labs, and
 headers and library for programs and mechanisms of your own.
END
# Removal of the package also removes the modules that Python compiles beside scripts run by root.
cat >"$deb/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
find /usr/share/heed -name __pycache__ -prune -exec rm -rf {} +
END
chmod 755 "$deb/DEBIAN/prerm"
(cd "$deb" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group -Zxz -z1 --build "$deb" "$packed/heed_${version}_amd64.deb" >/dev/null
ls -sh "$packed/heed_${version}_amd64.deb" "$packed/$name.tar.xz"
